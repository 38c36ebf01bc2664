import type { Task } from '../../base/core/environment.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Trainer } from '../../base/core/trainer.ts'
import { lossNamed } from '../../base/math/registry.ts'
import { tinkerSessionOf } from '../../engine/policies/tinker/session.ts'
import { convertGroup } from '../../run/exchange/convert.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { openNamed } from '../../run/settings/open-named.ts'
import { defaults, withoutUndefined } from '../../run/settings/settings.ts'
import { isUserPart, loadUserPart } from '../../run/settings/user-part.ts'
import { copyModel } from '../model/model.ts'
import { isEmbedded } from '../model/policy.ts'
import { withControl } from './control.ts'
import { type EmbeddedTrainerOptions, embeddedTrainer } from './embedded-trainer.ts'
import { adaptModel } from './lora.ts'
import { oraclePrompts, oracleTokenBonus } from './oracle.ts'
import { tinkerLossNamed } from './tinker/losses.ts'
import { readTinkerUri } from './tinker/options.ts'
import { openTinkerTrainer } from './tinker/trainer.ts'
import type { LearningOptions } from './train-options.ts'
import { openTrainerApart } from './trainer-apart.ts'
import { withWeightSync } from './weight-sync.ts'

/** What a trainer is opened for: the parts that are rolled, how it learns, and from which tasks. */
export interface Learning<Data = unknown> {
  readonly parts: RollParts<Data>
  readonly options: LearningOptions<Data>
  readonly tasks: readonly Task<Data>[]
}

/** The trainer that options name. A trainer passed as an object stays open when this is disposed of. */
export async function openLearner<Data>(
  learning: Learning<Data>,
): Promise<{ readonly trainer: Trainer } & AsyncDisposable> {
  const { trainer: given = defaults.trainer, control } = learning.options
  const { policy, seed = defaults.seed } = learning.parts
  const isGiven = typeof given === 'object'
  const opened = isGiven ? given : await openTrainerNamed(given, learning)
  const trainer = control ? withControl(opened, control, seed) : opened
  return {
    trainer: withWeightSync(trainer, policy),
    [Symbol.asyncDispose]: async () => {
      if (!isGiven) await opened[Symbol.asyncDispose]()
    },
  }
}

/** A kind of trainer that can be named, and what is known of it before anything is opened. */
interface TrainerKind {
  open<Data>(name: string, learning: Learning<Data>): Promise<Trainer>
  /** Throws for a loss that it does not have. */
  checkLoss(name: string): void
  /** Whether it changes weights that lie in this process, and no others. */
  readonly isInside: boolean
}

const kinds: Readonly<Record<string, TrainerKind>> = {
  embedded: { open: openEmbeddedTrainer, checkLoss: lossNamed, isInside: true },
  tinker: { open: openTinkerNamed, checkLoss: tinkerLossNamed, isInside: false },
}

/** The kind of a trainer that is named; your own trainers have none. */
export function trainerKind(trainer: Trainer | string = defaults.trainer): TrainerKind | undefined {
  if (typeof trainer !== 'string' || isUserPart(trainer)) return undefined
  const [name = ''] = trainer.split(':', 1)
  return Object.hasOwn(kinds, name) ? kinds[name] : undefined
}

async function openTrainerNamed<Data>(name: string, learning: Learning<Data>): Promise<Trainer> {
  const kind = trainerKind(name)
  if (kind) return await kind.open(name, learning)
  if (!isUserPart(name)) {
    throw new SettingError(
      `--trainer ${name}: there is no such trainer. Known: embedded, tinker:URL, ./file.ts#export.`,
    )
  }
  const part = await loadUserPart(name)
  const trainer: unknown = typeof part === 'function' ? await part(learning.parts) : part
  if (typeof trainer === 'object' && trainer !== null && 'step' in trainer)
    return trainer as Trainer
  throw new SettingError(`--trainer ${name}: this is not a trainer, which has step, save and load`)
}

/** The trainer of an embedded policy, with a copy of its weights if a penalty needs one. */
async function openEmbeddedTrainer<Data>(name: string, learning: Learning<Data>): Promise<Trainer> {
  if (name.includes(':')) throw new SettingError(`--trainer ${name}: embedded takes nothing else`)
  const { policy } = learning.parts
  if (!isEmbedded(policy)) throw notEmbedded(policy.name)
  const { klPenalty = defaults.klPenalty, klIn = defaults.klIn } = learning.options
  const isPenalised = klPenalty > 0 && klIn === 'loss'
  const isScored = learning.parts.scorers?.reference !== undefined
  const copy = isPenalised && !isScored ? await copyModel(policy.model) : undefined
  const reference = isPenalised && isScored ? 'scored' : copy
  const { maxStaleness = defaults.maxStaleness, lora } = learning.options
  await adaptModel(policy.model, { lora, seed: learning.parts.seed ?? defaults.seed })
  const open = maxStaleness > 0 ? openTrainerApart : embeddedTrainer
  const trainer = await open(policy.model, {
    ...embeddedOptions(learning),
    ...(reference && { kl: { penalty: { coefficient: klPenalty }, reference } }),
  })
  const { singleTurn = defaults.singleTurn, stepHistory = defaults.stepHistory } = learning.options
  return {
    ...trainer,
    ...(singleTurn && stepsOf(trainer, learning, stepHistory)),
    async [Symbol.asyncDispose]() {
      await trainer[Symbol.asyncDispose]()
      await copy?.[Symbol.asyncDispose]()
    },
  }
}

/** Learns each turn behind a prompt of its own; ratios still know what it was sampled with. */
function stepsOf<Data>(
  trainer: Trainer,
  { parts: { renderer } }: Learning<Data>,
  history: number,
): Pick<Trainer, 'step'> {
  return {
    step: (groups, call) =>
      trainer.step(
        groups.map(group => convertGroup(group, { renderer, history, keepsLogprobs: true })),
        call,
      ),
  }
}

function embeddedOptions<Data>({ parts, options, tasks }: Learning<Data>): EmbeddedTrainerOptions {
  const { policy, renderer, weighting, seed = defaults.seed } = parts
  const { learningRate, loss, lossOptions, epochs, updates, entropy } = options
  const { importance, proximal } = options
  const { oracleBonus: coefficient = defaults.oracleBonus } = options
  const { successAt = defaults.successAt } = options
  const promptOf = oraclePrompts(tasks)
  return {
    ...withoutUndefined({ learningRate, loss, lossOptions, epochs, updates, entropy, weighting }),
    ...withoutUndefined({ importance, proximal }),
    seed,
    ...(coefficient > 0 && {
      bonus: oracleTokenBonus({ policy, renderer, promptOf, coefficient, successAt }),
    }),
  }
}

/** The error for the embedded trainer with a policy whose weights are not in this process. */
export function notEmbedded(policy: string): SettingError {
  return new SettingError(
    `--policy ${policy}: the embedded trainer cannot change its weights. Train embedded or ` +
      'embedded:DIR, or name what can with --trainer tinker:URL or ./file.ts#export',
  )
}

/** A Tinker trainer shares the session of the policy, so that samples follow what is learned. */
async function openTinkerNamed<Data>(
  name: string,
  { parts, options }: Learning<Data>,
): Promise<Trainer> {
  const { url, options: given } = readTinkerUri(name)
  const session = tinkerSessionOf(parts.policy, url)
  if (!session) {
    throw new SettingError(
      `--trainer ${name} needs --policy tinker:${url}, so that samples follow it`,
    )
  }
  const { learningRate, loss = defaults.loss, epochs } = options
  if (typeof learningRate === 'object') {
    throw new SettingError(`--trainer ${name} takes one learning rate, not a schedule`)
  }
  const { weighting, seed } = parts
  const rate = learningRate === 'auto' ? undefined : learningRate
  const learning = withoutUndefined({
    learningRate: rate,
    loss,
    epochs,
    seed,
    weighting,
    ...given,
  })
  return await openNamed(`--loss ${loss}`, () => openTinkerTrainer(session, learning))
}
