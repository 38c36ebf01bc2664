import { didYouMean } from '../../names/nearest.ts'
import type { TinkerServerKind } from '../../policies/tinker/server-kind.ts'
import type { FactorOptions } from '../row-factors.ts'

/** A loss as a Tinker server is asked for it. */
export interface TinkerLoss {
  readonly name: string
  readonly config?: Readonly<Record<string, number>>
  readonly mean: FactorOptions['mean']
}

const clips = { clip_low_threshold: 0.8, clip_high_threshold: 1.28 }

/**
 * Our names of losses, as Tinker knows them, with the clips of the embedded trainer. Tinker's `ppo` has
 * no dual clip: with A < 0 and a ratio above 3, our `ppo` stops where Tinker's goes on.
 */
export const tinkerLosses: Readonly<Record<string, TinkerLoss>> = {
  ppo: { name: 'ppo', config: clips, mean: 'tokens' },
  grpo: { name: 'ppo', config: clips, mean: 'sequences' },
  bnpo: { name: 'ppo', config: clips, mean: 'tokens' },
  cispo: {
    name: 'cispo',
    config: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 },
    mean: 'tokens',
  },
  'importance-sampling': { name: 'importance_sampling', mean: 'tokens' },
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

/** What a server does with a loss it does not have. */
const instead: Partial<Record<TinkerServerKind['name'], string>> = {
  twinkle: ', and trains cross-entropy when it is asked for one',
}

/** The loss of this name on this server, which has to have it. */
export function lossFor(kind: TinkerServerKind, name: string | undefined): TinkerLoss {
  const has = (loss: TinkerLoss): boolean => kind.losses.includes(loss.name)
  const fitting = Object.keys(tinkerLosses).filter(each => has(tinkerLosses[each]!))
  const wanted = name ?? fitting[0]!
  const loss = tinkerLossNamed(wanted)
  if (has(loss)) return loss
  throw new Error(
    `${kind.name} has no loss "${wanted}"${instead[kind.name] ?? ''}. Use one of: ${fitting.join(', ')}.`,
  )
}
