import { didYouMean } from '../../../base/core/names/nearest.ts'
import {
  type LossName,
  lossNamed,
  lossNames,
  type PolicyLoss,
} from '../../../base/math/registry.ts'
import type { TinkerServerKind } from '../../../engine/policies/tinker/server-kind.ts'
import { usualLossOptions } from '../embedded-trainer.ts'
import type { FactorOptions } from '../row-factors.ts'

/** A loss that a Tinker server has, as it is asked for it. */
export interface ServerLoss {
  readonly kind: 'server'
  readonly name: string
  readonly config?: Readonly<Record<string, number>>
  readonly mean: FactorOptions['mean']
}

/** A loss computed here: the server runs forward, then backward with the slopes that we send. */
export interface OwnLoss {
  readonly kind: 'own'
  readonly name: LossName
  readonly loss: PolicyLoss
}

/** A loss that a model behind a Tinker server can be trained with. */
export type TinkerLoss = ServerLoss | OwnLoss

const clips = { clip_low_threshold: 0.8, clip_high_threshold: 1.28 }

const server = (
  name: string,
  mean: ServerLoss['mean'],
  config?: Readonly<Record<string, number>>,
): ServerLoss => ({ kind: 'server', name, mean, ...(config && { config }) })

const own = (name: LossName): OwnLoss => ({
  kind: 'own',
  name,
  loss: tokens => lossNamed(name)(tokens, usualLossOptions(name)),
})

/**
 * Our names of losses, as Tinker knows them, with the clips of the embedded trainer. Tinker's `ppo` has
 * no dual clip: with A < 0 and a ratio above 3, our `ppo` stops where Tinker's goes on.
 */
const serverLosses: Readonly<Record<string, ServerLoss>> = {
  ppo: server('ppo', 'tokens', clips),
  grpo: server('ppo', 'sequences', clips),
  bnpo: server('ppo', 'tokens', clips),
  cispo: server('cispo', 'tokens', { clip_low_threshold: 0.8, clip_high_threshold: 1.2 }),
  'importance-sampling': server('importance_sampling', 'tokens'),
}

/** All losses: those that Tinker lacks are computed here. */
const tinkerLosses: Readonly<Record<string, TinkerLoss>> = {
  ...serverLosses,
  ...Object.fromEntries(
    lossNames.filter(name => !Object.hasOwn(serverLosses, name)).map(name => [name, own(name)]),
  ),
}

/** The loss of this name, if Tinker has one. */
export function tinkerLossNamed(name: string): TinkerLoss {
  const loss = Object.hasOwn(tinkerLosses, name) ? tinkerLosses[name] : undefined
  if (loss) return loss
  const known = Object.keys(tinkerLosses)
  throw new Error(
    `Tinker has no loss "${name}". Known: ${known.join(', ')}.${didYouMean(name, known)}`,
  )
}

/** What servers without a loss would do instead, for the error message. */
const instead: Partial<Record<TinkerServerKind['name'], string>> = {
  twinkle: ', and trains cross-entropy when it is asked for one',
}

/** The loss of this name on this server, which has to have it. */
export function lossFor(kind: TinkerServerKind, name: string | undefined): TinkerLoss {
  const has = (loss: TinkerLoss): boolean =>
    loss.kind === 'own' ? kind.takesSlopes : kind.losses.includes(loss.name)
  const fitting = Object.keys(tinkerLosses).filter(each => has(tinkerLosses[each]!))
  const wanted = name ?? fitting[0]!
  const loss = tinkerLossNamed(wanted)
  if (has(loss)) return loss
  throw new Error(
    `${kind.name} has no loss "${wanted}"${instead[kind.name] ?? ''}. Use one of: ${fitting.join(', ')}.`,
  )
}
