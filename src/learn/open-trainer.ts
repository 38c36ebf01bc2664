import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Policy } from '../core/policy.ts'
import type { Trainer } from '../core/trainer.ts'
import { type EmbeddedModel, openModel } from '../model/model.ts'
import { isEmbedded } from '../model/policy.ts'
import { type EmbeddedTrainerOptions, embeddedTrainer } from './embedded-trainer.ts'

/** What decides who learns, and how. */
export interface OpenTrainerOptions extends Omit<EmbeddedTrainerOptions, 'kl'> {
  /** Coefficient of the KL penalty to the starting weights. @default 0 */
  readonly klPenalty?: number
}

/** The embedded trainer of a policy, with a copy of its weights where a penalty needs one. */
export async function openTrainer(policy: Policy, options: OpenTrainerOptions): Promise<Trainer> {
  if (!isEmbedded(policy)) {
    throw new Error(`${policy.name} is not embedded: give a trainer that can change its weights.`)
  }
  const { klPenalty = 0, ...rest } = options
  const reference = klPenalty > 0 ? await copyModel(policy.model) : undefined
  const trainer = embeddedTrainer(policy.model, {
    ...rest,
    ...(reference && { kl: { penalty: { coefficient: klPenalty }, reference } }),
  })
  return { ...trainer, [Symbol.asyncDispose]: async () => reference?.[Symbol.asyncDispose]() }
}

/** A model of its own with the weights of now. */
async function copyModel(model: EmbeddedModel): Promise<EmbeddedModel> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-reference-'))
  try {
    await model.save(folder)
    return await openModel({ folder }, { threads: model.threads, kernel: model.kernel })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The named fields that have a value, so that none overwrites a default. */
export function pickDefined<T extends object, K extends keyof T>(
  from: T,
  names: readonly K[],
): { [Name in K]?: Exclude<T[Name], undefined> } {
  const entries = names.flatMap(name => (from[name] === undefined ? [] : [[name, from[name]]]))
  return Object.fromEntries(entries) as { [Name in K]?: Exclude<T[Name], undefined> }
}
