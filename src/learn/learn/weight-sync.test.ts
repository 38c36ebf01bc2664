import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { textOf } from '@espalier/text'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { openByteRenderer } from '../../../test/rolling.ts'
import { serveEngine } from '../../../test/servers/engine.ts'
import { serveWeights } from '../../../test/servers/weights.ts'
import type { Group } from '../../base/core/group.ts'
import type { Trainer } from '../../base/core/trainer.ts'
import { environment } from '../../engine/environments/environment.ts'
import { scripted } from '../../engine/policies/scripted.ts'
import { openSglang } from '../../engine/policies/servers/sglang.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { groupRows } from '../../run/rows/row-record.ts'
import { byteModel } from '../../run/settings/model-source.ts'
import { openPolicy } from '../../run/settings/open-policy.ts'
import { type EmbeddedModel, openModel } from '../model/model.ts'
import { embeddedTrainer } from './embedded-trainer.ts'
import { trainParts } from './train.ts'
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

it('engines load what a trainer wrote when it publishes, if it does', async () => {
  await using server = await serveWeights('sglang')
  await using policy = openSglang(server.url)
  const trainer = withWeightSync({ ...writing(), publish: async () => {} }, policy)
  const loaded = () => server.bodies.flatMap(({ model_path: path }) => path ?? [])
  await trainer.step([], call)
  expect(loaded()).toEqual([])
  await trainer.publish?.(call)
  expect(loaded()).toEqual(['checkpoints/1'])
})

it('a policy that cannot load weights is told of, before anything else is sampled from it', async () => {
  const trainer = withWeightSync(writing(), scripted([]))
  await expect(trainer.step([], call)).rejects.toThrow(
    /wrote weights to checkpoints\/1, but scripted.* cannot load any/,
  )
})

/** Worth the share of letters in what was said. */
const letters = environment({
  name: 'letters',
  task: z.object({ prompt: z.string() }),
  open: ({ data }) => ({ opening: [{ role: 'user', content: data.prompt }] }),
  reward: {
    letters: ({ messages }) => {
      const said = textOf(messages.at(-1)!.content)
      return (said.match(/[a-z]/g)?.length ?? 0) / Math.max(1, said.length)
    },
  },
})

/** Learns in a model of its own and writes it out after each step; keeps what it was given. */
function writingModel(model: EmbeddedModel, folder: string) {
  const inner = embeddedTrainer(model, { learningRate: 0.02, entropy: 0 })
  const apart: number[] = []
  const versions: string[] = []
  const rewards: number[] = []
  const trainer: Trainer = {
    ...inner,
    name: 'writing',
    async step(groups, own) {
      apart.push(await furthest(model, groups))
      const rows = groups.flatMap(group => groupRows(group)).map(({ row }) => row)
      const told = rows.flatMap(row => row.versions.map(({ value }) => value))
      versions.push([...new Set(told.map(({ from, to }) => `${from}-${to}`))].join())
      const all = groups.flatMap(({ members }) => members.map(({ reward }) => reward.total))
      rewards.push(all.reduce((sum, each) => sum + each, 0) / all.length)
      const { version, metrics } = await inner.step(groups, own)
      const path = join(folder, String(version))
      await model.save(path)
      return { version, metrics, weights: { path, kind: 'model' } }
    },
  }
  return { trainer, apart, versions, rewards }
}

/** How far what was sampled with is from what the model says now, before it learns. */
async function furthest(model: EmbeddedModel, groups: readonly Group[]): Promise<number> {
  let most = 0
  for (const { row } of groups.flatMap(group => groupRows(group))) {
    const { logprobs } = await model.score(row.ids, 1, { temperature: 1 }, call)
    row.mask.forEach((bit, at) => {
      if (bit === 1) most = Math.max(most, Math.abs(row.logprobs[at]! - logprobs[at - 1]!))
    })
  }
  return most
}

it('a whole `train` samples each step from what the step before wrote, and learns', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-weights-'))
  const renderer = await openByteRenderer()
  const size = { width: 32, layers: 1, heads: 2, hidden: 48, context: 256 }
  const files = new Map(
    readdirSync(byteModel).map(name => [name, new Uint8Array(readFileSync(join(byteModel, name)))]),
  )
  const source = { shape: { vocabulary: renderer.vocabulary, ...size }, seed: 3, files }
  const how = { threads: 1, kernel: 'plain' } as const
  await using served = await openModel(source, how)
  await using learner = await openModel(source, how)
  await using engine = await serveEngine(served)
  await using policy = await openPolicy(`sglang:${engine.url}`)
  const { trainer, apart, versions, rewards } = writingModel(learner, folder)
  const tasks = Array.from({ length: 8 }, (_, id) => ({ id, prompt: `task ${id}` }))
  const estimate = makeEstimate('grpo')
  const limits = { turns: 1, newTokens: 12 }
  const parts = { environment: letters, policy, renderer, estimate, group: 6, limits }
  const trained = await trainParts(tasks, parts, { steps: 8, tasksPerStep: 2, heldOut: 2, trainer })
  expect(trained.steps).toBe(8)
  expect(engine.loaded).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map(step => join(folder, String(step))))
  expect(versions).toEqual(['0-0', '1-1', '2-2', '3-3', '4-4', '5-5', '6-6', '7-7'])
  expect(Math.max(...apart)).toBeLessThan(1e-5)
  expect(rewards.at(-1)).toBeGreaterThan(rewards[0]! + 0.2)
  rmSync(folder, { recursive: true, force: true })
})
