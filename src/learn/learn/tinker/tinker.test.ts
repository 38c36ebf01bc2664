import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { textOf } from '@espalier/text'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openByteRenderer } from '../../../../test/rolling.ts'
import { openTinkerServer } from '../../../../test/servers/tinker.ts'
import type { Group } from '../../../base/core/group.ts'
import { plainSampling } from '../../../base/core/policy.ts'
import type { Trainer, TrainerStep } from '../../../base/core/trainer.ts'
import { environment } from '../../../engine/environments/environment.ts'
import { openTinkerApi } from '../../../engine/policies/tinker/api.ts'
import {
  openTinkerSession,
  type TinkerSession,
  tinkerSessionOf,
} from '../../../engine/policies/tinker/session.ts'
import { makeEstimate } from '../../../engine/weigh/estimate.ts'
import { groupRows } from '../../../run/rows/row-record.ts'
import { type RollParts, rollGroups } from '../../../run/run/roll-groups.ts'
import { byteModel } from '../../../run/settings/model-source.ts'
import { openPolicy } from '../../../run/settings/open-policy.ts'
import { type EmbeddedModel, openModel } from '../../model/model.ts'
import { embeddedTrainer } from '../embedded-trainer.ts'
import { trainParts } from '../train.ts'
import { openTinkerTrainer } from './trainer.ts'

const renderer = await openByteRenderer()
const shape = {
  vocabulary: renderer.vocabulary,
  width: 32,
  layers: 1,
  heads: 2,
  hidden: 48,
  context: 256,
}
const files = new Map(
  readdirSync(byteModel).map(name => [name, new Uint8Array(readFileSync(join(byteModel, name)))]),
)
const server = await openTinkerServer(shape)
const call = { signal: new AbortController().signal }
afterAll(async () => await server[Symbol.asyncDispose]())

/** Worth the share of letters in what was said. */
const letters = environment({
  name: 'letters',
  task: z.object({ prompt: z.string() }),
  open: ({ data }) => ({ opening: [{ role: 'user', content: data.prompt }] }),
  reward: {
    letters: ({ messages }) => {
      const said = messages
        .filter(({ role }) => role === 'assistant')
        .map(({ content }) => textOf(content))
        .join('')
      return (said.match(/[a-z]/g)?.length ?? 0) / Math.max(1, said.length)
    },
  },
})

async function rollFrom(session: TinkerSession, seed: number): Promise<readonly Group[]> {
  const groups: Group[] = []
  const tasks = [{ prompt: 'a' }, { prompt: 'b' }]
  for await (const group of rollGroups(tasks, {
    environment: letters,
    policy: session.policy,
    renderer,
    estimate: makeEstimate('grpo'),
    group: 6,
    limits: { turns: 1, newTokens: 12 },
    seed,
  }))
    groups.push(group)
  // In the order of tasks, not of answers: sums of floats depend on it, and so would what is learned.
  return groups.sort((a, b) => a.id.localeCompare(b.id))
}

const meanReward = (groups: readonly Group[]): number => {
  const rewards = groups.flatMap(({ members }) => members.map(({ reward }) => reward.total))
  return rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length
}

/** A step, and samples from what it learned. */
async function learn(trainer: Trainer, groups: readonly Group[]): Promise<TrainerStep> {
  const step = await trainer.step(groups, call)
  await trainer.publish?.(call)
  return step
}

async function scores(model: EmbeddedModel, groups: readonly Group[]): Promise<readonly number[]> {
  const found: number[] = []
  for (const { row } of groups.flatMap(group => groupRows(group))) {
    const { logprobs } = await model.score(row.ids, 1, { temperature: 1 }, call)
    found.push(...logprobs)
  }
  return found
}

describe('training through a Tinker server', () => {
  it('samples with the log-probabilities of the model', async () => {
    await using session = await openTinkerSession(server.url)
    expect(session.baseModel).toBe('espalier/small')
    const prompt = { ids: Int32Array.of(5, 6, 7), messages: [], tools: [] }
    const sample = await session.policy.sample(
      {
        prompt,
        maxTokens: 8,
        sampling: plainSampling,
        stopIds: [0],
        stopStrings: [],
        seed: 4,
        key: { task: 't', member: 0, branch: '', turn: 0 },
        session: 's',
      },
      call,
    )
    if (sample.kind !== 'tokens') throw new Error('no tokens')
    const { ids, logprobs } = sample.segment
    const whole = Int32Array.from([...prompt.ids, ...ids])
    const scored = await server.trained.score(whole, 3, { temperature: 1 }, call)
    for (const [token, value] of scored.logprobs.entries()) {
      expect(logprobs![token]).toBeCloseTo(value, 5)
    }
  })

  it('takes the step that the embedded trainer takes on the same rows, summed over tokens', async () => {
    await using session = await openTinkerSession(server.url)
    const groups = await rollFrom(session, 1)
    await using twin = await openModel({ shape, seed: 3, files }, { threads: 1, kernel: 'plain' })
    expect(await scores(twin, groups)).toEqual(await scores(server.trained, groups))
    const trainer = await openTinkerTrainer(session, { learningRate: 1e-3 })
    const step = await trainer.step(groups, call)
    expect(step.version).toBe(1)
    expect(step.metrics.trainedTokens).toBeGreaterThan(0)
    expect(Math.abs(step.metrics.meanDifference!)).toBeLessThan(1e-5)
    const aggregation = { kind: 'constant', divisor: 1 } as const
    await embeddedTrainer(twin, {
      learningRate: 1e-3,
      entropy: 0,
      clip: Number.MAX_VALUE,
      lossOptions: { aggregation },
      measured: 1,
    }).step(groups, call)
    const theirs = await scores(server.trained, groups)
    const ours = await scores(twin, groups)
    const moved = Math.max(...ours.map((value, index) => Math.abs(value - theirs[index]!)))
    expect(moved).toBeLessThan(1e-4)
  })

  it.each(['gspo', 'gmpo', 'gpg'])(
    'takes the step of a loss that Tinker does not have, %s, with slopes made here',
    async loss => {
      await using fresh = await openTinkerServer(shape)
      await using session = await openTinkerSession(fresh.url)
      const groups = await rollFrom(session, 1)
      await using twin = await openModel({ shape, seed: 3, files }, { threads: 1, kernel: 'plain' })
      const before = await scores(twin, groups)
      const trainer = await openTinkerTrainer(session, { learningRate: 1e-3, loss })
      const { metrics } = await trainer.step(groups, call)
      expect(metrics.largestDifference).toBeLessThan(1e-4)
      const own = { learningRate: 1e-3, loss, entropy: 0, clip: Number.MAX_VALUE, measured: 1 }
      await embeddedTrainer(twin, own).step(groups, call)
      const theirs = await scores(fresh.trained, groups)
      const ours = await scores(twin, groups)
      const apart = (one: readonly number[]) =>
        Math.max(...ours.map((value, index) => Math.abs(value - one[index]!)))
      expect(apart(before)).toBeGreaterThan(1e-3)
      expect(apart(theirs)).toBeLessThan(1e-4)
    },
  )

  it.each(['ppo', 'gspo'])('tells where tokens come from when asked to, with %s', async loss => {
    await using session = await openTinkerSession(server.url)
    const before = server.claims()
    const silent = await openTinkerTrainer(session, { learningRate: 0, loss })
    await silent.step(await rollFrom(session, 3), call)
    expect(server.claims()).toBe(before)
    const trainer = await openTinkerTrainer(session, { learningRate: 0, loss, provenance: true })
    const { metrics } = await trainer.step(await rollFrom(session, 3), call)
    // Inputs and targets of a row are a prompt and what was sampled after it.
    const passes = loss === 'ppo' ? 1 : 2
    expect(server.claims() - before).toBe(4 * passes * metrics.trainedRows!)
  })

  it('learns: rewards rise over a few steps, and samples come from what was learned', async () => {
    await using session = await openTinkerSession(server.url)
    const trainer = await openTinkerTrainer(session, { learningRate: 0.02, loss: 'ppo' })
    const before = meanReward(await rollFrom(session, 100))
    for (let step = 0; step < 12; step++) {
      const groups = await rollFrom(session, step)
      const { version } = await learn(trainer, groups)
      expect(session.version).toBe(version)
      const versions = groups.flatMap(group =>
        groupRows(group).flatMap(({ row }) => row.versions.map(({ value }) => value.to)),
      )
      expect(new Set(versions)).toEqual(new Set([version - 1]))
    }
    expect(meanReward(await rollFrom(session, 100))).toBeGreaterThan(before + 0.2)
  })

  it('samples from the weights before while it learns, and from the new ones once they are published', async () => {
    await using session = await openTinkerSession(server.url)
    const trainer = await openTinkerTrainer(session, { learningRate: 0.02 })
    const groups = await rollFrom(session, 5)
    const { version } = await trainer.step(groups, call)
    expect([version, session.version]).toEqual([1, 0])
    const drawn = (from: readonly Group[]) =>
      from.flatMap(group => groupRows(group)).map(({ row }) => row.ids)
    expect(drawn(await rollFrom(session, 5))).toEqual(drawn(groups))
    await trainer.publish!(call)
    expect(session.version).toBe(1)
    expect(drawn(await rollFrom(session, 5))).not.toEqual(drawn(groups))
  })

  it('saves on the server and goes on from there', async () => {
    await using session = await openTinkerSession(server.url)
    const trainer = await openTinkerTrainer(session, { learningRate: 0.01 })
    const groups = await rollFrom(session, 7)
    await trainer.step(groups, call)
    const folder = mkdtempSync(join(tmpdir(), 'espalier-tinker-save-'))
    await trainer.save(folder, call)
    const saved = await scores(server.trained, groups)
    await trainer.step(groups, call)
    expect(await scores(server.trained, groups)).not.toEqual(saved)
    expect(await trainer.load(folder, call)).toEqual({ version: 1 })
    expect(await scores(server.trained, groups)).toEqual(saved)
    expect(session.version).toBe(1)
  })

  it('refuses losses that Tinker does not have, and says what servers say', async () => {
    await using session = await openTinkerSession(server.url)
    await expect(openTinkerTrainer(session, { loss: 'gppo' })).rejects.toThrow(
      /Tinker has no loss "gppo". Known: ppo/,
    )
    const cispo = await openTinkerTrainer(session, { loss: 'cispo' })
    await expect(cispo.step(await rollFrom(session, 2), call)).rejects.toThrow(
      /loss_fn cispo is not supported here/,
    )
    const api = openTinkerApi(server.url)
    await expect(api.post('create_sampling_session', {}, call)).rejects.toThrow(
      /create_sampling_session answered 400: Exactly one of base_model/,
    )
    await expect(api.post('nothing', {}, call)).rejects.toThrow(/nothing answered 404/)
  })

  it('is what `--trainer tinker:URL` trains with, over `--policy tinker:URL`', async () => {
    const uri = `tinker:${server.url}`
    const options = { steps: 2, tasksPerStep: 2, learningRate: 0.01, heldOut: 2 }
    await using policy = await openPolicy(uri)
    const parts: RollParts = {
      environment: letters,
      policy,
      renderer,
      estimate: makeEstimate('grpo'),
      group: 4,
      limits: { turns: 1, newTokens: 12 },
    }
    const tasks = Array.from({ length: 8 }, (_, id) => ({ id, prompt: `task ${id}` }))
    const trained = await trainParts(tasks, parts, { ...options, trainer: uri })
    expect(trained.steps).toBe(2)
    expect(tinkerSessionOf(policy, server.url)!.version).toBe(2)
    const elsewhere = { ...options, trainer: 'tinker:http://127.0.0.1:9' }
    await expect(trainParts(tasks, parts, elsewhere)).rejects.toThrow(/needs --policy tinker/)
  })
})
