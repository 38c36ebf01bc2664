import { expect, it } from 'vitest'
import { openApart } from './apart.ts'
import type { EmbeddedModel, TrainingRow } from './model.ts'
import type { MeasuredApart } from './supervised.ts'

const row: TrainingRow = { ids: Int32Array.of(1, 2), mask: Uint8Array.of(0, 1), temperature: 1 }

/** A model of which only the loss on what is kept apart matters. */
function modelOf(losses: readonly number[]) {
  const log: string[] = []
  let at = 0
  const model = {
    score: async () => ({ logprobs: Float32Array.of(-losses[at++]!) }),
    save: async () => void log.push(`save ${at - 1}`),
    load: async () => void log.push(`load after ${at - 1}`),
  }
  return { model: model as unknown as EmbeddedModel, log }
}

async function train(apart: readonly number[], trained: readonly number[]) {
  const { model, log } = modelOf(apart)
  const told: MeasuredApart[] = []
  const options = { seed: 1, apart: [row], onApart: (each: MeasuredApart) => told.push(each) }
  await using watch = await openApart(model, { ...options, steps: apart.length })
  let step = 0
  while (step < apart.length && !(await watch.isOver(step, trained[step]!))) step++
  return { step, log, last: told.at(-1)! }
}

it('stops where what is kept apart gets worse while what is taught gets better, with the best weights', async () => {
  const { step, log, last } = await train(
    [1, 0.5, 0.8, 0.9, 1, 1, 1],
    [1, 0.4, 0.2, 0.1, 0.05, 0, 0],
  )
  expect(step).toBe(4)
  expect(log).toEqual(['save 0', 'save 1', 'load after 4'])
  expect(last).toMatchObject({ step: 4, stoppedFor: 1 })
})

it('goes on over a plateau, and where both are equally bad', async () => {
  expect((await train([1, 1, 1.1, 1, 0.2], [1, 0.9, 0.9, 0.8, 0.2])).step).toBe(5)
  expect((await train([1, 2, 2, 2, 2], [1, 2, 2, 2, 2])).step).toBe(5)
})
