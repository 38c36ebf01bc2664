import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openCountingPolicy } from '../../test/counting-policy.ts'
import { openByteRenderer } from '../../test/rolling.ts'
import type { Group } from '../core/group.ts'
import type { SampleRequest } from '../core/policy.ts'
import { isSampled } from '../core/segment.ts'
import type { Trainer } from '../core/trainer.ts'
import type { Tree } from '../core/tree.ts'
import { singleTurn } from '../environments/built-in/single-turn.ts'
import type { RollParts } from '../run/roll-groups.ts'
import { openRunReader } from '../store/store.ts'
import { openEstimate } from '../weigh/estimate.ts'
import { train, trainParts } from './train.ts'
import type { LearningOptions } from './train-options.ts'
import type { StepRecord } from './training.ts'

const renderer = await openByteRenderer()
const end = renderer.stopIds[0]!
const tasks = Array.from({ length: 30 }, (_, id) => ({ id, prompt: `task ${id}`, answer: 'x' }))
const heldOut = [{ id: 'held', prompt: 'held out', answer: 'x' }]

/** A trainer that only counts, and a policy whose version it raises. */
function openLearning({ delay }: { readonly delay?: (request: SampleRequest) => number } = {}) {
  let version = 0
  const learned: (readonly Group[])[] = []
  const sampling = { atChange: 0 }
  const { policy, counts } = openCountingPolicy({
    length: ({ seed }) => 4 + (seed % 9),
    end,
    version: () => version,
    ...(delay && { delay }),
  })
  const trainer: Trainer = {
    name: 'counting',
    async step(groups) {
      sampling.atChange = Math.max(sampling.atChange, counts.running)
      learned.push(groups)
      version++
      return { version, metrics: { seen: groups.length } }
    },
    async save(folder) {
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'version'), String(version))
    },
    async load(folder) {
      version = Number(readFileSync(join(folder, 'version'), 'utf8'))
      return { version }
    },
    async [Symbol.asyncDispose]() {},
  }
  const parts: RollParts = {
    environment: singleTurn(),
    policy,
    renderer,
    estimate: openEstimate('grpo'),
    reward: { length: ({ trajectory }) => trajectory.usage.sampled },
    group: 2,
    concurrency: 8,
    seed: 4,
  }
  return { trainer, parts, counts, learned, sampling }
}

function versionsOf({ nodes }: Tree): ReadonlySet<number> {
  const segments = nodes.map(({ segment }) => segment).filter(isSampled)
  return new Set(segments.map(({ version }) => version.from))
}

const scratch = (): string => join(mkdtempSync(join(tmpdir(), 'espalier-training-')), 'run')

const plan = { steps: 6, tasksPerStep: 4, checkpointEvery: 2, heldOut, evaluateEvery: 3 } as const

async function rowsOf(run: string): Promise<unknown> {
  await using reader = await openRunReader(run)
  const rows: unknown[] = []
  for await (const { group } of reader.groups()) {
    rows.push([group.id, group.members.map(({ tree, advantage }) => [tree.nodes, advantage])])
  }
  return rows
}

describe('a training run', () => {
  it('that was interrupted goes on from its newest checkpoint to the same end', async () => {
    const whole = scratch()
    const undisturbed = openLearning()
    await trainParts(tasks, undisturbed.parts, {
      ...plan,
      trainer: undisturbed.trainer,
      out: whole,
    })
    const run = scratch()
    const first = openLearning()
    const stop = new AbortController()
    const interrupted = trainParts(
      tasks,
      { ...first.parts, signal: stop.signal },
      {
        ...plan,
        trainer: first.trainer,
        out: run,
        onStep: ({ step }) => step === 5 && stop.abort(new Error('interrupted')),
      },
    )
    await expect(interrupted).rejects.toThrow('interrupted')
    const second = openLearning()
    const steps: number[] = []
    const options: LearningOptions = {
      ...plan,
      trainer: second.trainer,
      out: run,
      resumes: true,
      onStep: ({ step }) => steps.push(step),
    }
    const { successBefore, training } = await trainParts(tasks, second.parts, options)
    expect(steps).toEqual([5, 6])
    expect(second.learned.flat()[0]!.step).toBe(5)
    expect([successBefore, training.best.step]).toEqual([1, 3])
    expect(await rowsOf(run)).toEqual(await rowsOf(whole))
    const metrics = readFileSync(join(run, 'metrics.jsonl'), 'utf8').trim().split('\n')
    expect(metrics.map(line => JSON.parse(line).step)).toEqual([1, 2, 3, 4, 5, 6])
    // Step 5 had been rolled with the weights of the checkpoint; only step 6 and the end are new.
    expect(second.counts.requests).toBe(2 * 4 + 1)
  })

  it('that rolls ahead learns from what is at most so many steps old', async () => {
    for (const maxStaleness of [1, 2]) {
      const { trainer, parts, sampling, learned } = openLearning({ delay: ({ seed }) => seed % 7 })
      const records: StepRecord[] = []
      await trainParts(tasks, parts, {
        ...plan,
        trainer,
        maxStaleness,
        onStep: record => records.push(record),
      })
      expect(records.map(({ staleness }) => staleness.most <= maxStaleness)).not.toContain(false)
      // Which step gets what was rolled ahead depends on who is done first; some step does.
      expect(Math.max(...records.map(({ staleness }) => staleness.most))).toBeGreaterThan(0)
      expect(learned.map(groups => groups.length)).toEqual([4, 4, 4, 4, 4, 4])
      expect(sampling.atChange).toBe(0)
      const ids = learned.flat().map(group => group.id)
      expect(new Set(ids).size).toBe(ids.length)
    }
  })

  it('does not wait for a slow rollout, which goes on under newer weights', async () => {
    for (const onUpdate of ['abort', 'finish'] as const) {
      const asked = new Set<string>()
      // At first it never ends by itself where updates abort it: they must not wait for it.
      const delay = ({ key: { task, member, turn } }: SampleRequest): number => {
        const name = `${task}/${member}/${turn}`
        const isFirst = !asked.has(name)
        asked.add(name)
        if (task !== '3' || member > 0 || !isFirst) return 1
        return onUpdate === 'abort' ? Number.POSITIVE_INFINITY : 40
      }
      const { trainer, parts, sampling, learned } = openLearning({ delay })
      const stretched = { ...plan, steps: 12, trainer, maxStaleness: 3, onUpdate }
      await trainParts(tasks, parts, stretched)
      expect(sampling.atChange).toBe(0)
      const groups = learned.flat()
      expect(groups.flatMap(({ unscored }) => unscored)).toEqual([])
      const mixed = groups.flatMap(({ members }) =>
        members.filter(({ tree }) => versionsOf(tree).size > 1),
      )
      if (onUpdate === 'abort') expect(mixed.length).toBeGreaterThan(0)
      else expect(mixed).toEqual([])
    }
  })

  it('stops at its budget and can be resumed with a larger one', async () => {
    const run = scratch()
    const { trainer, parts } = openLearning()
    const options = { ...plan, checkpointEvery: 1, trainer, out: run }
    const budget = { tokens: 200 }
    await expect(trainParts(tasks, { ...parts, budget }, options)).rejects.toThrow(
      'the budget of 200 tokens is spent',
    )
    const again = openLearning()
    const { steps } = await trainParts(tasks, again.parts, {
      ...options,
      trainer: again.trainer,
      resumes: true,
    })
    expect(steps).toBe(6)
    const { environment, policy } = parts
    await expect(
      train(environment, tasks, { ...plan, policy, trainer, budget: { trajectories: 4 } }),
    ).rejects.toThrow('trajectories are for roll and eval')
  })
})
