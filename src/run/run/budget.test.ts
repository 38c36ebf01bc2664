import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openCountingPolicy } from '../../../test/counting-policy.ts'
import { dicePolicy, openByteRenderer } from '../../../test/rolling.ts'
import { aroundPolicy } from '../../base/core/around.ts'
import type { Group } from '../../base/core/group.ts'
import type { Policy } from '../../base/core/policy.ts'
import { calculator } from '../../engine/environments/built-in/calculator.ts'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { withFork } from '../../engine/environments/fork.ts'
import { openBranchPolicy } from '../../engine/rollout/branches/registry.ts'
import { rollTree } from '../../engine/rollout/tree.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { RunStoppedError } from '../watch/stopped.ts'
import type { BudgetLimits } from './budget.ts'
import { type RollParts, rollGroups } from './roll-groups.ts'

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
    const parts = { environment, policy, renderer, estimate: makeEstimate('grpo'), group: 2 }
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

/** A policy that counts what it gave, and what it gave and may still give at any one time. */
function counted(policy: Policy) {
  const counts = { sampled: 0, promised: 0, mostPromised: 0 }
  const around = aroundPolicy(policy, {
    async draw({ request, seeds, ask }) {
      const most = request.maxTokens * seeds.length
      counts.promised += most
      counts.mostPromised = Math.max(counts.mostPromised, counts.sampled + counts.promised)
      await nextTurn()
      const samples = await ask()
      counts.promised -= most
      counts.sampled += samples.reduce((sum, { usage }) => sum + usage.sampled, 0)
      return samples
    },
  })
  return { policy: around, counts }
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

  it.each([
    'fixed:width=3,depth=2',
    'arpo:initial=2,chance=0.8',
    'tree-grpo:expansions=3,rounds=2',
    'tree-rl',
  ])('[R1] of tokens holds for trees grown by %s, sample by sample', async name => {
    const talking = await openByteRenderer({ toolFormat: 'hermes' })
    const branch = openBranchPolicy(name, talking.vocabulary)
    for (const tokens of [40, 300, 900, 1e6]) {
      const { policy, counts } = counted(dicePolicy(talking))
      const { groups, error } = await roll(
        { tokens },
        {
          environment: withFork(calculator()),
          policy,
          renderer: talking,
          strategy: rollTree({ branch, leaves: 6 }),
          leaves: 6,
          limits: { turns: 6, newTokens: 64 },
          reward: { one: () => 1 },
        },
      )
      expect(counts.sampled).toBeLessThanOrEqual(tokens)
      // What is set aside at one time fits too: no answer could have gone beyond the budget.
      expect(counts.mostPromised).toBeLessThanOrEqual(tokens)
      expect([error === undefined, groups.length === 40]).toEqual([tokens === 1e6, tokens === 1e6])
    }
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
