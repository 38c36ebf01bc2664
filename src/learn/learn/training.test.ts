import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openCountingPolicy } from '../../../test/counting-policy.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import type { Filter, Group } from '../../base/core/group.ts'
import type { SampleRequest } from '../../base/core/policy.ts'
import { isSampled } from '../../base/core/segment.ts'
import type { Trainer } from '../../base/core/trainer.ts'
import type { Tree } from '../../base/core/tree.ts'
import { grpoAdvantages } from '../../base/math/advantages/grpo.ts'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { rollChain } from '../../engine/rollout/chain.ts'
import type { Strategy } from '../../engine/rollout/strategy.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { exportRun } from '../../run/exchange/export.ts'
import { type RollParts, rollGroups } from '../../run/run/roll-groups.ts'
import { openRunReader } from '../../run/store/store.ts'
import type { StepRecord } from './steps/step-record.ts'
import { train, trainParts } from './train.ts'
import type { LearningOptions } from './train-options.ts'
import { readState } from './training-state.ts'

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
    estimate: makeEstimate('grpo'),
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

/** The advantages of each learned step, as they stand in its members. */
async function advantagesOf(control?: LearningOptions['control']): Promise<readonly number[][]> {
  const { trainer, parts, learned } = openLearning()
  const options = { ...plan, trainer, steps: 2, ...(control && { control }) }
  await trainParts(tasks, parts, options)
  return learned.map(groups =>
    groups.flatMap(({ members }) => members.map(({ advantage }) => advantage ?? 0)),
  )
}

it('a control learns from the same attempts with their advantages shuffled, or from noise', async () => {
  const [plain, shuffled, noise] = await Promise.all([
    advantagesOf(),
    advantagesOf('shuffled'),
    advantagesOf('noise'),
  ])
  const sorted = (steps: readonly number[][]) => steps.map(step => step.toSorted((a, b) => a - b))
  expect(shuffled).not.toEqual(plain)
  expect(sorted(shuffled)).toEqual(sorted(plain))
  expect(sorted(noise)).not.toEqual(sorted(plain))
})

describe('a training run', () => {
  it.each([
    { how: 'in order goes on behind its last step', saves: true, from: 6 },
    { how: 'at once goes on from its newest checkpoint', saves: false, from: 5 },
  ])('that was interrupted $how, to the same end', async ({ saves, from }) => {
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
    const save: Trainer['save'] = async (folder, call) => {
      if (stop.signal.aborted && !saves) throw new Error('no time left')
      return await first.trainer.save(folder, call)
    }
    const interrupted = trainParts(
      tasks,
      { ...first.parts, signal: stop.signal },
      {
        ...plan,
        trainer: { ...first.trainer, save },
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
    expect(steps).toEqual([5, 6].slice(from - 5))
    expect(second.learned.flat()[0]!.step).toBe(from)
    expect([successBefore, training.best.step]).toEqual([1, 3])
    expect(await rowsOf(run)).toEqual(await rowsOf(whole))
    const metrics = readFileSync(join(run, 'metrics.jsonl'), 'utf8').trim().split('\n')
    expect(metrics.map(line => JSON.parse(line).step)).toEqual([1, 2, 3, 4, 5, 6])
    // Step 5 had been rolled with the weights of the checkpoint; only step 6 and the end are new.
    expect(second.counts.requests).toBe(2 * 4 + 1)
  })

  it.each([
    { maxStaleness: 0, from: 0, which: 'at a held-out task' },
    { maxStaleness: 0, from: 3, which: 'of step 3' },
    // What was rolled ahead may suffice for one step more.
    { maxStaleness: 1, from: 4, which: 'of step [45]' },
  ])('ends when every attempt fails: $which', async ({ maxStaleness, from, which }) => {
    const { trainer, parts, learned } = openLearning()
    const policy: typeof parts.policy = {
      ...parts.policy,
      async sample(request, call) {
        if (learned.length + 1 >= from) throw new Error('the server is away')
        return await parts.policy.sample(request, call)
      },
    }
    const out = scratch()
    const options = {
      ...plan,
      evaluateEvery: 100,
      checkpointEvery: 100,
      maxStaleness,
      trainer,
      out,
    }
    await expect(trainParts(tasks, { ...parts, policy }, options)).rejects.toThrow(
      new RegExp(`No attempt ${which} could be scored: failed in policy: the server is away`),
    )
    // What was learned before is kept.
    const kept = learned.length
    expect((await readState(out))?.step).toBe(kept > 0 ? kept : undefined)
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

describe('what a training run is measured by', () => {
  /** Parts whose attempts are trees as far as anyone can tell, and how often one was rolled. */
  function openTrees() {
    const learning = openLearning()
    const rolled = { trees: 0 }
    const strategy: Strategy = (context, attempt) => {
      rolled.trees++
      return rollChain(context, attempt)
    }
    return { ...learning, rolled, parts: { ...learning.parts, strategy, leaves: 4 } }
  }

  it.each([
    [undefined, 0],
    ['chain', 0],
    ['same', 3],
  ] as const)('is chains unless asked otherwise (%s)', async (evaluateStrategy, expected) => {
    const { trainer, parts, rolled } = openTrees()
    await trainParts(tasks, parts, {
      ...plan,
      trainer,
      ...(evaluateStrategy && { evaluateStrategy }),
    })
    // Six steps of four tasks with two trees each, and three evaluations of one task.
    expect(rolled.trees - 6 * 4 * 2).toBe(expected)
  })
})

describe('advantages over a batch', () => {
  it('are scaled by the spread of all rewards of a step', async () => {
    const { trainer, parts, learned } = openLearning()
    const estimate = makeEstimate('grpo:scale=batch')
    await trainParts(tasks, { ...parts, estimate }, { ...plan, trainer })
    for (const groups of learned) {
      const entries = groups.flatMap(({ id, members }) =>
        members.map(({ trajectory, reward }) => ({
          group: id,
          trajectory: trajectory.id,
          reward: reward.total,
        })),
      )
      const expected = grpoAdvantages(entries, { scale: 'batch' })
      const given = groups.flatMap(({ members }) => members.map(({ advantage }) => advantage!))
      given.forEach((advantage, index) => {
        expect(advantage).toBeCloseTo(expected[index]!, 12)
      })
    }
    expect(learned).toHaveLength(6)
  })

  it('are exported as they were learned from, and refused where no batch is known', async () => {
    const { trainer, parts, learned } = openLearning()
    const estimate = makeEstimate('grpo:scale=batch')
    const out = scratch()
    const config = { advantage: 'grpo:scale=batch' }
    await trainParts(tasks, { ...parts, estimate }, { ...plan, trainer, out, config })
    const file = join(out, 'rows.jsonl')
    await exportRun(out, { to: 'jsonl', out: file })
    const lines = readFileSync(file, 'utf8').trim().split('\n')
    const written = lines.map(line => JSON.parse(line) as { trajectory: string; advantage: number })
    for (const { trajectory, advantage } of learned.flat().flatMap(({ members }) => members)) {
      const row = written.find(each => each.trajectory === trajectory.id)
      expect(row!.advantage).toBeCloseTo(advantage!, 6)
    }
    const rolling = rollGroups(tasks, { ...parts, estimate })
    await expect(rolling.next()).rejects.toThrow('scale=batch is for train')
  })
})

describe('the tasks of a step', () => {
  it.each([0, 0.5, 2])(
    'come once in each pass, with %s refills per task or without',
    async refill => {
      const { trainer, parts, learned } = openLearning()
      const empty: Filter = {
        name: 'empty',
        judge: ({ id, members }) =>
          new Map(
            Number(id.split('/')[1]) % 2 === 0
              ? members.map(({ trajectory }) => [trajectory.id, { reason: 'even', from: 'loss' }])
              : [],
          ),
      }
      const odd = { ...plan, tasksPerStep: 5, refill, trainer }
      await trainParts(tasks, { ...parts, filters: [empty] }, odd)
      const drawn = learned.map(groups => groups.map(({ task }) => task))
      expect(new Set(drawn.flatMap(step => step.slice(0, 5))).size).toBe(30)
      for (const step of drawn) expect(new Set(step).size).toBe(step.length)
      // Places 0, 2 and 4 are emptied, and the refills at 6 and 8.
      expect(drawn.map(({ length }) => length)).toEqual(
        drawn.map(() => 5 + [0, 2, 5][[0, 0.5, 2].indexOf(refill)]!),
      )
    },
  )
})

it.each([0, 1])(
  '[D1] what filters emptied is counted and remembered, %s steps ahead',
  async maxStaleness => {
    const { trainer, parts } = openLearning()
    const all: Filter = {
      name: 'all',
      judge: ({ members }) =>
        new Map(members.map(({ trajectory }) => [trajectory.id, { reason: 'all', from: 'loss' }])),
    }
    const records: StepRecord[] = []
    const options = { ...plan, steps: 2, trainer, maxStaleness, sampleTasks: 'band' }
    const { tasks: drawn, sampledTokens } = await trainParts(
      tasks,
      { ...parts, filters: [all] },
      { ...options, onStep: record => records.push(record) },
    )
    const total = (name: 'groups' | 'dropped' | 'sampledTokens') =>
      records.reduce((sum, record) => sum + record[name], 0)
    expect(total('dropped')).toBe(2 * total('groups'))
    // Four tasks a step, and what was rolled in their place.
    expect(total('groups')).toBeGreaterThan(2 * 4)
    expect(sampledTokens).toBe(total('sampledTokens'))
    expect(drawn.draws).toBe(total('groups'))
  },
)

describe('tasks by their success', () => {
  it('go on from a checkpoint as if nothing had happened, and are in the report', async () => {
    const options = { ...plan, sampleTasks: 'thompson', checkpointEvery: 1 }
    const whole = scratch()
    const undisturbed = openLearning()
    const { tasks: drawn } = await trainParts(tasks, undisturbed.parts, {
      ...options,
      trainer: undisturbed.trainer,
      out: whole,
    })
    expect(drawn).toMatchObject({ method: 'thompson', tasks: 30, draws: 24 })
    const run = scratch()
    const first = openLearning()
    const stop = new AbortController()
    const cut = { ...first.parts, signal: stop.signal }
    const onStep = ({ step }: StepRecord) => step === 4 && stop.abort(new Error('cut'))
    const interrupted = trainParts(tasks, cut, {
      ...options,
      trainer: first.trainer,
      out: run,
      onStep,
    })
    await expect(interrupted).rejects.toThrow('cut')
    const second = openLearning()
    await trainParts(tasks, second.parts, {
      ...options,
      trainer: second.trainer,
      out: run,
      resumes: true,
    })
    expect(await rowsOf(run)).toEqual(await rowsOf(whole))
  })

  it('under a wrong name are refused before anything is opened', async () => {
    const { parts } = openLearning()
    const { environment, policy } = parts
    const wrong = train(environment, tasks, { ...plan, policy, sampleTasks: 'bnad' })
    await expect(wrong).rejects.toThrow(/--sample-tasks bnad.*band/)
  })
})
