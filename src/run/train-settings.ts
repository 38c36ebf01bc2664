import type { Trainer } from '../core/trainer.ts'
import type { RollParts } from './roll.ts'
import { SettingError, type Settings } from './settings.ts'
import { sessionAt } from './tinker-session.ts'
import { openTinkerTrainer } from './tinker-trainer.ts'
import { type LearningOptions, type Trained, trainParts } from './train.ts'
import { isUserPart, loadUserPart } from './user-part.ts'

/** Trains as settings say, with parts that were opened by them. */
export async function trainWith(
  values: Settings,
  parts: RollParts,
  more: Pick<LearningOptions, 'out' | 'resumes' | 'onStep' | 'onEvaluation'>,
): Promise<Trained> {
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

/** A trainer by name; nothing for the embedded one, which the policy brings along. */
async function openTrainerNamed(values: Settings, parts: RollParts): Promise<Trainer | undefined> {
  const { trainer: name, learningRate, loss, epochs, seed, weighting } = values
  if (name === 'embedded') return undefined
  if (name.startsWith('tinker:')) {
    const session = sessionAt(name.slice('tinker:'.length))
    if (!session) {
      throw new SettingError(`--trainer ${name} needs --policy ${name}, so that samples follow it`)
    }
    return await openTinkerTrainer(session, { learningRate, loss, epochs, seed, weighting })
  }
  if (!isUserPart(name)) {
    throw new SettingError(`no trainer "${name}". Known: embedded, tinker:URL, ./file.ts#export.`)
  }
  const part = await loadUserPart(name)
  const trainer: unknown = typeof part === 'function' ? await part(parts) : part
  if (typeof trainer === 'object' && trainer !== null && 'step' in trainer)
    return trainer as Trainer
  throw new SettingError(`${name} is not a trainer: it needs step, save and load`)
}
