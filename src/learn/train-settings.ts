import { SettingError } from '../core/setting-error.ts'
import type { Trainer } from '../core/trainer.ts'
import { lossNamed } from '../math/registry.ts'
import { isEmbedded } from '../model/policy.ts'
import { sessionAt } from '../policies/servers/tinker-session.ts'
import type { RollParts } from '../run/roll-groups.ts'
import { openNamed } from '../settings/open-named.ts'
import type { Settings } from '../settings/settings.ts'
import { isUserPart, loadUserPart } from '../settings/user-part.ts'
import { openTinkerTrainer } from './tinker-trainer.ts'
import { type LearningOptions, type Trained, trainParts } from './train.ts'

/** Trains as settings say, with parts that were opened by them. */
export async function trainWith(
  values: Settings,
  parts: RollParts,
  more: Pick<LearningOptions, 'out' | 'resumes' | 'onStep' | 'onEvaluation'>,
): Promise<Trained> {
  await checkLearning(values)
  const trainer = await openTrainerNamed(values, parts)
  try {
    return await trainParts(values.tasks ?? values.steps * values.tasksPerStep, parts, {
      steps: values.steps,
      tasksPerStep: values.tasksPerStep,
      checkpointEvery: values.checkpointEvery,
      learningRate: values.learningRate,
      loss: values.loss,
      epochs: values.epochs,
      updates: values.updates,
      entropy: values.entropyBonus,
      klPenalty: values.klPenalty,
      oracleBonus: values.oracleBonus,
      refill: values.refill,
      successAt: values.successAt,
      maxStaleness: values.maxStaleness,
      onUpdate: values.onUpdate,
      record: values,
      ...(values.evaluateEvery !== undefined && { evaluateEvery: values.evaluateEvery }),
      ...(values.heldOut !== undefined && { heldOut: values.heldOut }),
      ...(trainer && { trainer }),
      ...more,
    })
  } finally {
    await trainer?.[Symbol.asyncDispose]()
  }
}

/** Refuses what cannot be learned by, before anything is opened for it. */
export async function checkLearning({ loss, budget, ...values }: Settings): Promise<void> {
  await openNamed(`--loss ${loss}`, () => lossNamed(loss))
  if (budget?.trajectories === undefined) return
  const { steps, tasksPerStep, group } = values
  throw new SettingError(
    `--budget: trajectories are for roll and eval. How many train rolls its steps say: ${steps} steps × ` +
      `${tasksPerStep} tasks × ${group} = ${steps * tasksPerStep * group}, and evaluations. Set --steps, ` +
      '--tasks-per-step or --group, or a budget of tokens, seconds or money',
  )
}

/** What a Tinker server is said to divide by, as in `tinker:URL?divides=rows`. */
function readDivides(name: string, query: string | undefined): 'nothing' | 'rows' {
  if (query === undefined) return 'nothing'
  const [key, value, ...rest] = query.split('=')
  if (key === 'divides' && (value === 'rows' || value === 'nothing') && rest.length === 0)
    return value
  throw new SettingError(`--trainer ${name}: after ? it takes divides=nothing or divides=rows`)
}

/** A trainer by name; nothing for the embedded one, which the policy brings along. */
async function openTrainerNamed(values: Settings, parts: RollParts): Promise<Trainer | undefined> {
  const { trainer: name, learningRate, loss, epochs, seed, weighting } = values
  if (name === 'embedded') {
    if (isEmbedded(parts.policy)) return undefined
    throw new SettingError(
      `--policy ${parts.policy.name}: the embedded trainer cannot change its weights. Train embedded or ` +
        'embedded:DIR, or name what can with --trainer tinker:URL or ./file.ts#export',
    )
  }
  if (name.startsWith('tinker:')) {
    const [url = '', query] = name.slice('tinker:'.length).split('?')
    const session = sessionAt(url)
    if (!session) {
      throw new SettingError(
        `--trainer ${name} needs --policy tinker:${url}, so that samples follow it`,
      )
    }
    const divides = readDivides(name, query)
    return await openNamed(`--loss ${loss}`, () =>
      openTinkerTrainer(session, { learningRate, loss, epochs, seed, weighting, divides }),
    )
  }
  if (!isUserPart(name)) {
    throw new SettingError(
      `--trainer ${name}: there is no such trainer. Known: embedded, tinker:URL, ./file.ts#export.`,
    )
  }
  const part = await loadUserPart(name)
  const trainer: unknown = typeof part === 'function' ? await part(parts) : part
  if (typeof trainer === 'object' && trainer !== null && 'step' in trainer)
    return trainer as Trainer
  throw new SettingError(`--trainer ${name}: this is not a trainer, which has step, save and load`)
}
