import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Simulated, simulateTraining } from '../../../../test/simulated-training.ts'
import type { Filter } from '../../../base/core/group.ts'
import type { TaskId } from '../../../base/core/ids.ts'
import { makeTaskSampler } from '../../../run/tasks/sample-tasks.ts'
import { readState } from '../training-state.ts'
import { type Ledger, makeLedger } from './ledger.ts'
import type { StepRecord } from './step-record.ts'

const isSlow = (task: string): boolean => Number(task) % 4 === 0

/** A quarter of the tasks wait 0.36 seconds at a tool; a step of learning takes 0.1. */
const slowTools = {
  learn: 0.1,
  attempt: (task: string) => (isSlow(task) ? 0.36 : 0.01),
  tasks: 64,
}

const plan = { steps: 24, tasksPerStep: 8 }

function shareOfSlow({ learned }: Simulated): number {
  const groups = learned.flat()
  return groups.filter(({ task }) => isSlow(task)).length / groups.length
}

function waitedIn(records: readonly StepRecord[]): number {
  const sum = (of: (record: StepRecord) => number): number =>
    records.reduce((total, record) => total + of(record), 0)
  return sum(({ seconds }) => seconds.roll) / sum(({ seconds }) => seconds.roll + seconds.learn)
}

function sumOf({ learned, dropped, inFlight, heldOut }: Ledger): number {
  const lost = Object.values(dropped).reduce((sum, tokens) => sum + tokens, 0)
  return learned + lost + inFlight + heldOut
}

describe('rolling ahead of learning', () => {
  it('[S4] leaves slow tasks their share, at any allowance, and takes less time than in turn', async () => {
    const inTurn = await simulateTraining({ ...slowTools, plan })
    expect(shareOfSlow(inTurn)).toBe(0.25)
    for (const [maxStaleness, share, waited] of [
      [1, 0.6, 0.6],
      [4, 0.3, 0.05],
    ] as const) {
      const ahead = await simulateTraining({ ...slowTools, plan: { ...plan, maxStaleness } })
      expect(shareOfSlow(ahead)).toBe(0.25)
      expect(ahead.seconds).toBeLessThan(share * inTurn.seconds)
      // At first nothing is measured, and nothing is there to learn from.
      expect(waitedIn(ahead.records.slice(8))).toBeLessThan(waited)
      const ages = ahead.records.map(({ staleness }) => staleness.most)
      expect(Math.max(...ages)).toBeLessThanOrEqual(maxStaleness)
      expect(ahead.records.map(({ stale }) => stale)).toEqual(Array(24).fill(0))
    }
  })

  it('is no further ahead than the measured times need, and than it may be', async () => {
    const stepsAhead = async (lookAhead?: number) => {
      const more = { maxStaleness: 8, ...(lookAhead !== undefined && { lookAhead }) }
      const { records } = await simulateTraining({ ...slowTools, plan: { ...plan, ...more } })
      return Math.max(...records.map(({ ahead }) => ahead!.steps))
    }
    expect(await stepsAhead()).toBeLessThan(5)
    expect(await stepsAhead(2)).toBe(2)
  })

  it('[S4] lets the task of a group that is too old come again', async () => {
    const late = new Set<string>()
    const version = (task: string, now: number): number => {
      // The server was late with its weights when it first saw every third task.
      if (now < 6 || late.size > 3 || Number(task) % 3 > 0) return now
      late.add(task)
      return now - 5
    }
    const simulation = { ...slowTools, version, plan: { ...plan, maxStaleness: 2 } }
    const { learned, records, training } = await simulateTraining(simulation)
    const refused = records.flatMap(({ ahead }) => ahead!.stale)
    expect(refused.length).toBeGreaterThan(0)
    expect(refused.length).toBe(records.reduce((sum, { stale }) => sum + stale, 0))
    // Each of 64 tasks three times in 24 steps of 8, the refused too.
    const ids = learned.flat().map(({ task }) => task)
    expect(ids).toHaveLength(192)
    for (const task of refused) expect(ids.filter(id => id === task)).toHaveLength(3)
    expect(training.ledger.dropped.stale).toBeGreaterThan(0)
  })
})

it('[S4] an interrupted run goes on with what was in flight: no task is left out', async () => {
  const out = mkdtempSync(join(tmpdir(), 'espalier-feed-'))
  const kept = { ...plan, maxStaleness: 4, checkpointEvery: 1, out }
  const until = { isEnough: ({ step }: StepRecord) => step === 9 }
  const first = await simulateTraining({ ...slowTools, plan: { ...kept, ...until } })
  const state = await readState(out)
  expect(state!.feed!.open.length).toBeGreaterThan(0)
  const second = await simulateTraining({ ...slowTools, plan: { ...kept, from: state! } })
  const learned = [...first.learned, ...second.learned].flat()
  const counts = Array.from(
    { length: 64 },
    (_, task) => learned.filter(group => group.task === `${task}`).length,
  )
  expect(counts).toEqual(Array(64).fill(3))
  expect(new Set(learned.map(({ id }) => id)).size).toBe(192)
})

it('tasks whose attempts always fail outside the policy take no other task’s place', async () => {
  const isBroken = (task: string): boolean => Number(task) < 4
  const tasks = Array.from({ length: 40 }, (_, id) => ({ id: `${id}` as TaskId, data: null }))
  const { learned } = await simulateTraining({
    ...slowTools,
    tasks: tasks.length,
    attempt: task => {
      if (isBroken(task)) throw new Error('the tool is away')
      return 0.01
    },
    plan: { ...plan, tasks: makeTaskSampler('band', tasks, 1) },
  })
  const broken = learned.flat().filter(({ task }) => isBroken(task)).length
  // A tenth of the tasks; they are drawn to explore, as all others are.
  expect(broken).toBeLessThan(0.2 * 192)
})

describe('the ledger of tokens', () => {
  it.each([0, 3])('[D1] closes to the token, %s steps ahead', async maxStaleness => {
    const odd: Filter = {
      name: 'odd',
      judge: ({ members }) =>
        new Map(
          members
            .filter(({ tree }) => tree.member % 2 === 1)
            .map(({ trajectory }) => [trajectory.id, { reason: 'odd', from: 'loss' }]),
        ),
    }
    const attempt = (task: string, seed: number): number => {
      if (seed % 11 === 0) throw new Error('the tool is away')
      return slowTools.attempt(task)
    }
    const { training, records, sampled, learned } = await simulateTraining({
      ...{ ...slowTools, attempt, parts: { filters: [odd] } },
      plan: { ...plan, steps: 8, maxStaleness },
    })
    const { ledger } = training
    expect(ledger.sampled).toBe(sampled)
    expect(ledger.inFlight).toBe(0)
    expect(Object.keys(ledger.dropped).sort()).toEqual(['failed in environment', 'odd'])
    for (const record of records) expect(sumOf(record.ledger)).toBe(record.ledger.sampled)
    expect(sumOf(ledger)).toBe(ledger.sampled)
    const members = learned.flat().flatMap(group => group.members)
    const kept = members.filter(({ dropped }) => dropped === null)
    expect(ledger.learned).toBe(
      kept.reduce((sum, { trajectory }) => sum + trajectory.usage.sampled, 0),
    )
    if (maxStaleness > 0) expect(records[2]!.ledger.inFlight).toBeGreaterThan(0)
  })

  it('goes on where it was: what was in flight at an interruption is rolled again', () => {
    const from = { sampled: 10, learned: 4, dropped: { odd: 1 }, inFlight: 3, heldOut: 2 }
    expect(makeLedger(from).read()).toEqual({
      ...from,
      inFlight: 0,
      dropped: { odd: 1, interrupted: 3 },
    })
    // Of 17 sampled before the interruption, 2 are in attempts that are kept, and 5 came after the checkpoint.
    expect(makeLedger(from, { everSampled: 17, kept: 2 }).read()).toEqual({
      ...from,
      sampled: 15,
      inFlight: 0,
      dropped: { odd: 1, interrupted: 8 },
    })
  })
})
