import { basename } from 'node:path'
import { bytes, count, duration } from '../../../base/core/names/units.ts'
import { defaultLimits } from '../../../engine/rollout/attempt.ts'
import type { RollParts } from '../../../run/run/roll-groups.ts'
import { defaults } from '../../../run/settings/settings.ts'
import type { EmbeddedModel } from '../../model/model.ts'
import { isEmbedded } from '../../model/policy.ts'
import { twoEnginesLine } from '../off-policy.ts'
import type { TrainOptions } from '../train-options.ts'

/** What is sampled to find out how quick this machine is: some attempts at once behind one prompt. */
const trial = { rows: 16, prompt: 64, tokens: 8 } as const

/** Lines for whoever starts a training run, before its first attempt. */
export async function linesBefore<Data>(
  parts: RollParts<Data>,
  options: TrainOptions<Data>,
): Promise<readonly string[]> {
  const { steps = defaults.steps, tasksPerStep = defaults.tasksPerStep } = options
  const lines = [
    twoEnginesLine(parts.policy, options),
    await foretell(parts, { steps, tasksPerStep }),
  ]
  return lines.filter(line => line !== undefined)
}

/**
 * A line about what a pretrained model takes and how long it may learn here, from a short measurement;
 * undefined for a small model and for one elsewhere. Learning is taken to last as long as sampling.
 */
async function foretell<Data>(
  { policy, group = defaults.group, leaves = 1, ...parts }: RollParts<Data>,
  { steps, tasksPerStep }: { readonly steps: number; readonly tasksPerStep: number },
): Promise<string | undefined> {
  if (!isEmbedded(policy) || policy.model.base === undefined) return undefined
  const { model } = policy
  const signal = parts.signal ?? new AbortController().signal
  const rate = await measureSampling(model, signal)
  const { turns, newTokens, tokens } = { ...defaultLimits, ...parts.limits }
  const most = tasksPerStep * group * leaves * Math.min(turns * newTokens, tokens)
  const step = (2 * most) / rate
  const memory = model.memory === undefined ? '' : `${bytes(model.memory)} of memory, `
  return (
    `${basename(model.base!)}: ${memory}${model.device}; ${Math.round(rate)} tokens a second at first. ` +
    `A step samples ${count(most)} tokens at most: ${duration(step)} with learning, ${duration(steps * step)} for ${steps}.`
  )
}

/** Tokens a second of a few attempts at once. */
async function measureSampling(model: EmbeddedModel, signal: AbortSignal): Promise<number> {
  const { rows, tokens } = trial
  const length = Math.min(trial.prompt, model.shape.context - tokens)
  const prompt = Int32Array.from({ length }, (_, at) => (7 * at) % model.shape.vocabulary)
  const started = performance.now()
  const drawn = await Promise.all(
    Array.from({ length: rows }, (_, seed) =>
      model.sample({ prompt, maxTokens: tokens, temperature: 1, stop: [], seed }, { signal }),
    ),
  )
  const sampled = drawn.reduce((sum, { ids }) => sum + ids.length, 0)
  return sampled / ((performance.now() - started) / 1000)
}
