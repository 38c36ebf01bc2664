import { expect, it } from 'vitest'
import { serveWeights } from '../../test/servers/weights.ts'
import type { Trainer } from '../core/trainer.ts'
import { scripted } from '../policies/scripted.ts'
import { openSglang } from '../policies/servers/sglang.ts'
import { withWeightSync } from './weight-sync.ts'

const call = { signal: AbortSignal.timeout(50_000) }

/** A trainer that writes a folder per step and learns nothing. */
function writing(): Trainer {
  let version = 0
  const weights = () => ({ path: `checkpoints/${version}`, kind: 'model' as const })
  return {
    name: 'writing',
    async step() {
      version++
      return { version, metrics: {}, weights: weights() }
    },
    async save() {},
    async load() {
      version = 7
      return { version, weights: weights() }
    },
    async [Symbol.asyncDispose]() {},
  }
}

it('engines load what a trainer wrote, after each step and where it goes on', async () => {
  await using server = await serveWeights('sglang')
  await using policy = openSglang(server.url)
  const trainer = withWeightSync(writing(), policy)
  expect(await trainer.step([], call)).toMatchObject({ version: 1 })
  expect(await trainer.load('there', call)).toMatchObject({ version: 7 })
  const loaded = server.bodies.flatMap(({ model_path: path }) => path ?? [])
  expect(loaded).toEqual(['checkpoints/1', 'checkpoints/7'])
})

it('a policy that cannot load weights is told of, before anything else is sampled from it', async () => {
  const trainer = withWeightSync(writing(), scripted([]))
  await expect(trainer.step([], call)).rejects.toThrow(
    /wrote weights to checkpoints\/1, but scripted.* cannot load any/,
  )
})
