import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mean } from '../../base/math/statistics.ts'
import type { EmbeddedModel, TrainingRow } from './model.ts'
import type { SupervisedOptions } from './supervised.ts'

/** How often the validation rows are measured during training. */
const times = 40
/** Measurements in a row that must be worse before training stops. */
const patience = 3

/** Measures the validation rows, and keeps the weights with the lowest loss on them. */
export interface Apart extends AsyncDisposable {
  /** To be called after a step; true if training should stop, with the best weights restored. */
  isOver(step: number, loss: number): Promise<boolean>
}

/**
 * Opens the measurement. A model memorises when its training loss still falls while the loss on the
 * validation rows clearly rises.
 */
export async function openApart(
  model: EmbeddedModel,
  { apart = [], onApart, steps, signal }: SupervisedOptions & { readonly steps: number },
): Promise<Apart> {
  if (apart.length === 0) {
    return { isOver: async () => false, [Symbol.asyncDispose]: async () => {} }
  }
  const folder = await mkdtemp(join(tmpdir(), 'espalier-teach-'))
  const every = Math.max(1, Math.floor(steps / times))
  let best = { loss: Number.POSITIVE_INFINITY, step: -1 }
  let losses: number[] = []
  let worse = 0
  return {
    async isOver(step, loss) {
      losses.push(loss)
      const isLast = step + 1 === steps
      if ((step + 1) % every !== 0 && !isLast) return false
      const [trained, measured] = [mean(losses), await lossOf(model, apart, signal)]
      losses = []
      if (measured < best.loss) {
        best = { loss: measured, step }
        await model.save(folder)
      }
      worse = isByHeart(measured, best.loss, trained) ? worse + 1 : 0
      const isOver = worse >= patience || (isLast && worse > 0)
      onApart?.({
        step,
        steps,
        trained,
        apart: measured,
        ...(isOver && { stoppedFor: best.step }),
      })
      if (isOver) await model.load(folder)
      return isOver
    },
    async [Symbol.asyncDispose]() {
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Whether the validation loss is a quarter above its best, and far above the training loss. */
function isByHeart(apart: number, best: number, trained: number): boolean {
  return apart > 1.25 * best + 0.02 && trained < apart / 2
}

/** Mean −log π of the tokens to be learned. */
async function lossOf(
  model: EmbeddedModel,
  rows: readonly TrainingRow[],
  signal = new AbortController().signal,
): Promise<number> {
  let sum = 0
  let tokens = 0
  for (const { ids, mask, temperature } of rows) {
    // The first token has no context, so it is not scored.
    const scored = await model.score(ids, 1, { temperature }, { signal })
    for (const [index, logprob] of scored.logprobs.entries()) {
      if (mask[index + 1] !== 1) continue
      sum -= logprob
      tokens++
    }
  }
  return tokens === 0 ? 0 : sum / tokens
}
