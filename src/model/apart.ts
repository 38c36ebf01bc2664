import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mean } from '../math/statistics.ts'
import type { EmbeddedModel, TrainingRow } from './model.ts'
import type { SupervisedOptions } from './supervised.ts'

/** How often rows that are kept apart are measured over a training. */
const times = 40
/** Measurements in a row that must be worse before training stops. */
const patience = 3

/** Watches the rows that are kept apart, and keeps the weights with which they went best. */
export interface Apart extends AsyncDisposable {
  /** Looks after a step; true where training is over, with the best weights in the model. */
  isOver(step: number, loss: number): Promise<boolean>
}

/**
 * Opens the watch. A model learns by heart where what it is trained on still gets better while what is
 * kept apart gets clearly worse.
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

/** A quarter worse than it was, and much worse than what is trained. */
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
    // The first token has nothing before it that it could follow from.
    const scored = await model.score(ids, 1, { temperature }, { signal })
    for (const [index, logprob] of scored.logprobs.entries()) {
      if (mask[index + 1] !== 1) continue
      sum -= logprob
      tokens++
    }
  }
  return tokens === 0 ? 0 : sum / tokens
}
