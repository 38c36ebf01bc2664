import { type Policy, plainSampling } from '../../src/base/core/policy.ts'
import type { Torch } from './torch.ts'
import { distances, draw } from './try-server.ts'

/** The result of letting a server load other weights. */
export interface WeightsReport {
  readonly kind: string
  readonly path: string
  /** The version that a sample afterwards was of. */
  readonly version: number
  /** How far its numbers are from PyTorch with the weights that were loaded. */
  readonly apart: number
}

/** Loads weights into a server as `train` does after a step, samples, and scores with PyTorch. */
export async function tryWeights(
  policy: Policy,
  options: {
    readonly kind: string
    readonly path: string
    readonly version: number
    readonly prompt: Int32Array
    readonly torch: Torch
  },
): Promise<WeightsReport> {
  const { kind, path, version, prompt, torch } = options
  if (!policy.weights) throw new Error(`${kind} cannot load weights`)
  const call = { signal: AbortSignal.timeout(600_000) }
  await policy.weights.update({ path, version, kind: 'model' }, call)
  const { segment } = await draw(policy, { prompt, sampling: plainSampling, seed: version })
  const truth = await torch.score([...prompt, ...segment.ids], prompt.length, 1)
  const apart = Math.max(0, ...distances(truth, [...(segment.logprobs ?? [])]))
  return { kind, path, version: segment.version.to, apart }
}
