import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { openCountingPolicy } from '../../../test/counting-policy.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import { showSignals, signals, signalTasks } from '../../../test/signals.ts'
import type { Group } from '../../base/core/group.ts'
import type { SampleRequest } from '../../base/core/policy.ts'
import { isSampled } from '../../base/core/segment.ts'
import type { Trainer } from '../../base/core/trainer.ts'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import type { OnUpdate } from '../../run/run/pause.ts'
import { roll } from '../../run/run/roll.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { openEmbedded } from '../model/embedded.ts'
import type { EmbeddedPolicy } from '../model/policy.ts'
import { auditRun } from './audit.ts'
import { embeddedTrainer } from './embedded-trainer.ts'
import type { StepRecord } from './steps/step-record.ts'
import { teach } from './teach.ts'
import { rendererOf, train, trainParts } from './train.ts'
import { openTrainerApart } from './trainer-apart.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-apart-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const renderer = await openByteRenderer()
const heldOut = [{ id: 'held', prompt: 'held out', answer: 'x' }]
const questions = Array.from({ length: 30 }, (_, id) => ({ id, prompt: `task ${id}`, answer: 'x' }))

/** Trains for some steps with a trainer whose every step lasts until a sample ends that began before it. */
async function trainWhileSampling(onUpdate: OnUpdate) {
  const end = renderer.stopIds[0]!
  const published = { version: 0 }
  const events: string[] = []
  const learned: (readonly Group[])[] = []
  let ended: () => void = () => {}
  // One sample of each version but the last ones is under way until an update cuts it, or for long. Of
  // an attempt that began before, it would be waited for, and no update would come.
  const slow = new Set<number>()
  const begun = new Set<string>()
  const delay = ({ key: { task } }: SampleRequest): number => {
    const { version } = published
    const isBegun = begun.has(task)
    begun.add(task)
    if (isBegun || slow.has(version) || version > 5 || task === heldOut[0]!.id) return 2
    slow.add(version)
    return onUpdate === 'abort' ? Number.POSITIVE_INFINITY : 60
  }
  const { policy, counts } = openCountingPolicy({
    length: ({ seed }) => 4 + (seed % 9),
    end,
    version: () => published.version,
    delay,
  })
  const { sample } = policy
  const watched = {
    ...policy,
    async sample(...given: Parameters<typeof sample>) {
      const drawn = await sample(...given)
      events.push('sampled')
      ended()
      return drawn
    },
  }
  let version = 0
  /** Lasts until a sample ends, as long as there is more to roll than what was begun before. */
  const measure = async () => {
    if (version <= 6) await new Promise<void>(done => (ended = done))
    events.push(`measured under ${published.version}`)
    return { metrics: { moved: version } }
  }
  const trainer: Trainer = {
    name: 'apart',
    async step(groups) {
      learned.push(groups)
      events.push('step begins')
      if (counts.running > 0 && onUpdate === 'finish')
        await new Promise<void>(done => (ended = done))
      events.push('step ends')
      return { version: ++version, metrics: {}, measure }
    },
    async publish() {
      events.push(`published under ${counts.running} samples`)
      published.version = version
    },
    save: async () => {},
    load: async () => ({ version }),
    async [Symbol.asyncDispose]() {},
  }
  const parts: RollParts = {
    environment: singleTurn(),
    policy: watched,
    renderer,
    estimate: makeEstimate('grpo'),
    reward: { length: ({ trajectory }) => trajectory.usage.sampled },
    group: 2,
    concurrency: 8,
    seed: 4,
  }
  const records: StepRecord[] = []
  await trainParts(questions, parts, {
    ...{ steps: 8, tasksPerStep: 4, heldOut, trainer, maxStaleness: 1, onUpdate },
    onStep: record => records.push(record),
  })
  return { events, learned, records }
}

describe('a trainer that publishes', () => {
  it('[S3] learns while samples are under way, and publishes between them', async () => {
    const { events, records } = await trainWhileSampling('finish')
    const during = events.filter(
      (event, at) =>
        event === 'sampled' && events.slice(0, at).findLast(isOfStep) === 'step begins',
    )
    expect(during.length).toBeGreaterThan(3)
    const published = events.filter(event => event.startsWith('published'))
    expect(published).toEqual(Array(8).fill('published under 0 samples'))
    expect(Math.max(...records.map(({ staleness }) => staleness.most))).toBe(1)
  })

  it('[S3] measures what it has changed while samples of it are under way', async () => {
    const { events, records } = await trainWhileSampling('finish')
    const steps = [1, 2, 3, 4, 5, 6, 7, 8]
    expect(events.filter(event => event.startsWith('measured'))).toEqual(
      steps.map(version => `measured under ${version}`),
    )
    expect(records.map(({ metrics }) => metrics)).toEqual(steps.map(moved => ({ moved })))
  })

  it.each(['abort', 'finish'] as const)(
    '[S3] has samples under way %s when it publishes, and learns from nothing older than it may',
    async onUpdate => {
      const { learned, records } = await trainWhileSampling(onUpdate)
      const members = learned.flat().flatMap(group => group.members)
      const mixed = members.filter(({ tree: { nodes } }) => {
        const segments = nodes.map(({ segment }) => segment).filter(isSampled)
        return new Set(segments.map(({ version }) => version.from)).size > 1
      })
      if (onUpdate === 'abort') expect(mixed.length).toBeGreaterThan(0)
      else expect(mixed).toEqual([])
      expect(records.every(({ staleness }) => staleness.most <= 1)).toBe(true)
      expect(learned.map(groups => groups.length)).toEqual(Array(8).fill(4))
    },
  )
})

const isOfStep = (event: string): boolean => event.startsWith('step')

describe('the embedded model', () => {
  const taught = join(folder, 'taught')
  beforeAll(async () => {
    await using _ = await teach(signals, signalTasks(60, 1), {
      show: showSignals(1, 0.25),
      seed: 1,
      epochs: 2,
      shape: { width: 32, layers: 1, heads: 2, hidden: 32, context: 64 },
      threads: 1,
      out: taught,
    })
  })

  async function run(out: string, more: object = {}): Promise<readonly StepRecord[]> {
    await using policy = await openEmbedded(taught, { threads: 1, kernel: 'plain' })
    const records: StepRecord[] = []
    await train(signals, signalTasks(40, 1), {
      ...{ steps: 5, tasksPerStep: 4, group: 3, heldOut: 4, checkpointEvery: 1, seed: 2 },
      learningRate: 1e-2,
      limits: { newTokens: 12, turns: 3 },
      maxStaleness: 1,
      policy,
      out,
      onStep: record => records.push(record),
      ...more,
    })
    return records
  }

  it('[S3] that learns apart and was cut goes on, all its tokens with the version that drew them', async () => {
    const out = join(folder, 'run')
    const stop = new AbortController()
    const onStep = ({ step }: StepRecord) => step === 3 && stop.abort(new Error('cut'))
    await expect(run(out, { signal: stop.signal, onStep })).rejects.toThrow('cut')
    const rest = await run(out, { resumes: true })
    expect(rest.map(({ step, staleness }) => [step, staleness.most <= 1])).toEqual([
      [4, true],
      [5, true],
    ])
    await using policy = await openEmbedded(taught, { threads: 1, kernel: 'plain' })
    const { tokens, checked, wrong } = await auditRun(out, policy)
    expect({ checked, wrong }).toEqual({ checked: tokens, wrong: 0 })
  })

  it('[S3] learns to the same bits apart from what is sampled, which is as it was until it is published', async () => {
    await using sampled = await openEmbedded(taught, { threads: 1, kernel: 'plain' })
    await using apart = await openTrainerApart(sampled.model, {})
    const groups = await rolledWith(sampled)
    const before = await sampled.model.weights()
    const { version } = await apart.step(groups, call)
    expect(await sampled.model.weights()).toEqual(before)
    await apart.publish?.(call)
    const published = await sampled.model.weights()
    expect([before.version, published.version]).toEqual([0, version])
    await using shared = await openEmbedded(taught, { threads: 1, kernel: 'plain' })
    await embeddedTrainer(shared.model).step(groups, call)
    expect(published).toEqual(await shared.model.weights())
  })
})

it('learning apart leaves sampling half of its threads, and gives them back', async () => {
  await using sampled = await openEmbedded(undefined, { threads: 3 })
  const use = vi.spyOn(sampled.model, 'useThreads')
  {
    await using _ = await openTrainerApart(sampled.model, {})
    expect(use.mock.calls).toEqual([[2]])
  }
  expect(use.mock.calls).toEqual([[2], [3]])
})

const call = { signal: new AbortController().signal }

async function rolledWith(policy: EmbeddedPolicy): Promise<readonly Group[]> {
  const limits = { newTokens: 12, turns: 3 }
  const options = { policy, model: rendererOf(policy), group: 4, limits }
  const groups: Group[] = []
  for await (const group of roll(signals, signalTasks(4, 3), options)) groups.push(group)
  return groups
}
