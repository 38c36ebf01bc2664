import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openCountingPolicy } from '../../test/counting-policy.ts'
import { openByteRenderer } from '../../test/rolling.ts'
import type { Group } from '../core/group.ts'
import { singleTurn } from '../environments/single-turn.ts'
import type { BudgetLimits } from './budget.ts'
import { openEstimate } from './estimate.ts'
import { type RollParts, rollGroups } from './roll.ts'
import { RunStoppedError } from './stopped.ts'

const renderer = await openByteRenderer()
const environment = singleTurn()
const end = renderer.stopIds[0]!
const tasks = Array.from({ length: 40 }, (_, id) => ({ id, prompt: `task ${id}`, answer: 'x' }))

/** Rolls tasks within a budget; gives what came out and how it ended. */
async function roll(budget: BudgetLimits, more: Partial<RollParts> = {}) {
  const { policy, counts } = openCountingPolicy({
    length: ({ seed }) => 5 + (seed % 40),
    delay: ({ seed }) => seed % 4,
    end,
  })
  const groups: Group[] = []
  let error: unknown
  try {
    const parts = { environment, policy, renderer, estimate: openEstimate('grpo'), group: 2 }
    const reward = { one: () => 1 }
    for await (const group of rollGroups(tasks, {
      ...parts,
      reward,
      limits: { newTokens: 64 },
      concurrency: 16,
      budget,
      ...more,
    })) {
      groups.push(group)
    }
  } catch (cause) {
    error = cause
  }
  return { groups, counts, error }
}

const whole = await roll({})

describe('a budget', () => {
  it('that is large enough changes nothing', async () => {
    expect(whole.error).toBeUndefined()
    const { groups, counts, error } = await roll({ tokens: whole.counts.sampled })
    expect([groups.length, counts.sampled, error]).toEqual([40, whole.counts.sampled, undefined])
  })

  it('of tokens is never exceeded, and used up but for what no sample fits into', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 1500 }), async tokens => {
        const { counts, error, groups } = await roll({ tokens })
        expect(counts.sampled).toBeLessThanOrEqual(tokens)
        if (tokens < whole.counts.sampled) {
          expect(error).toBeInstanceOf(RunStoppedError)
          expect((error as RunStoppedError).kind).toBe('tokens')
          // One sample was cut by the end of the budget, so that nothing is left of it.
          expect(counts.sampled).toBe(tokens)
        }
        for (const { members } of groups) {
          for (const { trajectory } of members) expect(trajectory.outcome.kind).toBe('completed')
        }
      }),
      { seed: 3, numRuns: process.env.ESPALIER_SOAK ? 100 : 8 },
    )
  })

  it('of trajectories is exact: whole groups, as many as fit', async () => {
    const { groups, counts, error } = await roll({ trajectories: 15 })
    expect([groups.length, counts.requests]).toEqual([7, 14])
    expect(String(error)).toContain('the budget of 15 trajectories is spent (14 used)')
  })

  it('of money counts prompts and samples at their price', async () => {
    const price = { prompt: 1000, sampled: 10_000 }
    const { counts, error } = await roll({ money: 5, price })
    const paid = (counts.prompted * price.prompt + counts.sampled * price.sampled) / 1e6
    expect(paid).toBeLessThanOrEqual(5)
    expect(paid).toBeGreaterThan(4.5)
    expect(String(error)).toContain('the budget of 5 money is spent')
    await expect(roll({ money: 5 })).resolves.toMatchObject({
      error: expect.objectContaining({ message: expect.stringContaining('needs a price') }),
    })
  })

  it('of money per rollout truncates the attempt that reaches it', async () => {
    const price = { prompt: 0, sampled: 1e6 }
    const { groups, error } = await roll({ price, perRollout: { money: 20 } })
    expect(error).toBeUndefined()
    const outcomes = groups.flatMap(({ members }) =>
      members.map(({ trajectory: { outcome, usage } }) => [outcome.kind, usage.sampled <= 20]),
    )
    expect(outcomes.every(([, isWithin]) => isWithin)).toBe(true)
    expect(new Set(outcomes.map(([kind]) => kind))).toEqual(new Set(['completed', 'truncated']))
  })

  it('of seconds stops within one abort', async () => {
    // Nothing but the budget ends these samples.
    const delay = () => Number.POSITIVE_INFINITY
    const { policy } = openCountingPolicy({ length: () => 5, delay, end })
    const { error } = await roll({ seconds: 0.1 }, { policy })
    expect(String(error)).toMatch(/the budget of 0.1 seconds is spent/)
  })

  it('goes on from what a run had cost before', async () => {
    const spent = { tokens: 900, trajectories: 0, money: 0 }
    const { counts } = await roll({ tokens: 1000 }, { spent })
    expect(counts.sampled).toBe(100)
  })
})
