import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { attemptAt, call, contextOf, dicePolicy, openByteRenderer } from '../../../test/rolling.ts'
import type { Environment, World } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import type { Policy } from '../../base/core/policy.ts'
import { idsTo, pathTo } from '../../base/core/tree.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { calculator } from '../environments/built-in/calculator.ts'
import { keyValue } from '../environments/built-in/key-value.ts'
import { environment } from '../environments/environment.ts'
import { withFork } from '../environments/fork.ts'
import { replyOf } from '../environments/reply.ts'
import { tool } from '../environments/tools/tool.ts'
import { defaultLimits, type RolloutContext } from './attempt.ts'
import { openBranchPolicy } from './branches/registry.ts'
import { outcomeOf, TimeIsUp } from './end-walk.ts'
import { rollTree } from './tree.ts'

const renderer = await openByteRenderer({ toolFormat: 'hermes' })
const world = withFork(calculator())
const names = ['fixed', 'arpo:initial=2,chance=0.8', 'tree-grpo:expansions=3,rounds=2', 'tree-rl']
const soak = Number(process.env.ESPALIER_SOAK ?? 1)

function roll(
  name: string,
  seed: number,
  parts: Partial<RolloutContext> & { leaves?: number } = {},
) {
  const { leaves = 6, ...more } = parts
  const base = { environment: world, renderer, policy: dicePolicy(renderer) }
  const context = contextOf({ ...base, limits: { ...defaultLimits, turns: 6 }, ...more })
  const branch = openBranchPolicy(name, renderer.vocabulary)
  const attempt = attemptAt(context.environment, { prompt: 'What is 2+3?', answer: '5' }, { seed })
  return rollTree({ branch, leaves })(context, attempt)
}

/** The same policy, whose answers come in any order. */
function unsteady(policy: Policy, seed: number): Policy {
  let count = 0
  const letOthersGo = async (): Promise<void> => {
    const turns = Math.floor(random(seedOf('delay', seed, count++))() * 8)
    for (let turn = 0; turn < turns; turn++) await nextTurn()
  }
  const { sampleSeveral: _several, ...rest } = policy
  return {
    ...rest,
    async sample(request, given) {
      await letOthersGo()
      return await policy.sample(request, given)
    },
  }
}

describe.each(names)('a tree grown by %s', name => {
  it('[R1] has at most as many endings as it may have', async () => {
    for (let seed = 0; seed < 8 * soak; seed++) {
      const leaves = 1 + (seed % 9)
      const tree = await roll(name, seed, { leaves })
      expect(tree.trajectories.length).toBeLessThanOrEqual(leaves)
    }
  })

  it('[R2] is the same in whatever order its samples arrive', async () => {
    const policy = dicePolicy(renderer)
    const trees = await Promise.all(
      [1, 2, 3].map(seed => roll(name, 7, { policy: unsteady(policy, seed) })),
    )
    const [one, ...others] = trees.map(tree =>
      tree.trajectories.map(({ end, messages, share }) => [[...idsTo(tree, end)], messages, share]),
    )
    for (const other of others) expect(other).toEqual(one)
  })

  it('[R2] has turns that begin at their own first sampled token', async () => {
    for (let seed = 0; seed < 6 * soak; seed++) {
      const tree = await roll(name, seed, { policy: unsteady(dicePolicy(renderer), seed) })
      for (const { turns, end } of tree.trajectories) {
        const path = pathTo(tree, end).map(({ node }) => node)
        for (const { from } of turns) {
          expect(path).toContain(from)
          expect(tree.nodes[from]!.segment.origin).toBe('sampled')
        }
      }
    }
  })
})

describe('forked worlds', () => {
  const lanes = makeLanes({ policy: 8, tools: 8, environment: 8, reward: 8 })
  const signal = new AbortController().signal
  const open = (of: Environment): Promise<World> => {
    const data = of.readTask({ prompt: 'p', want: {}, store: { a: '1' } })
    return of.open({ id: 't' as TaskId, data }, { seed: 1, signal, lanes })
  }
  /** The same world without a fork of its own: it is forked by replay. */
  const native: Environment = keyValue()
  const replayed: Environment = {
    ...native,
    async open(task, given) {
      const { fork: _fork, ...opened } = await native.open(task, given)
      return opened
    },
  }

  it.each([
    ['natively', withFork(native)],
    ['by replay', withFork(replayed)],
  ])('[R3] %s stand byte for byte where the first stood, and go their own way', async (_, of) => {
    for (let seed = 0; seed < 25 * soak; seed++) {
      const next = random(seedOf('worlds', seed))
      const pick = (): string => 'abcd'[Math.floor(next() * 4)]!
      await using first = await open(of)
      let turn = 0
      const act = (on: World, key: string) =>
        on.step(replyOf('', { tool: 'put', input: { key, value: `v${turn}` } }), {
          signal,
          messages: [],
          turn: turn++,
        })
      for (let step = Math.floor(next() * 6); step > 0; step--) await act(first, pick())
      await using fork = await first.fork!({ signal })
      const before = JSON.stringify(await first.report!())
      expect(JSON.stringify(await fork.report!())).toBe(before)
      await act(fork, pick())
      expect(JSON.stringify(await first.report!())).toBe(before)
      expect(JSON.stringify(await fork.report!())).not.toBe(before)
    }
  })

  it('[R4] that cannot be brought there are failures in the tree; what grew without them stands', async () => {
    let drawn = 0
    const moody = withFork(
      environment({
        name: 'moody',
        task: z.object({ prompt: z.string(), answer: z.string() }),
        open: ({ data }) => ({
          opening: [{ role: 'user' as const, content: data.prompt }],
          tools: {
            calculate: tool({
              inputSchema: z.object({ expression: z.string() }),
              execute: () => `${drawn++}`,
            }),
          },
        }),
        reward: { one: () => 1 },
      }) as Environment,
    )
    const tree = await roll('fixed:width=2,depth=4', 2, { environment: moody, leaves: 8 })
    const failed = tree.trajectories.filter(({ outcome }) => outcome.kind === 'failed')
    const ended = tree.trajectories.filter(({ outcome }) => outcome.kind !== 'failed')
    expect(ended.length).toBeGreaterThan(0)
    expect(failed.length).toBeGreaterThan(0)
    for (const { outcome } of failed) {
      expect(outcome).toMatchObject({
        boundary: 'environment',
        message: expect.stringContaining('A replayed world went another way at turn'),
      })
    }
  })
})

describe('time', () => {
  it('[R1] ends a tree within one abort; what was sampled is kept, and nobody is graded for a slow server', async () => {
    const policy = dicePolicy(renderer)
    const limits = { ...defaultLimits, seconds: 60 }
    let hanging = 0
    const slow: Policy = {
      ...policy,
      async sample(request, { signal }) {
        if (request.key.turn > 0) await untilAborted(signal)
        return await policy.sample(request, { signal })
      },
    }
    /** Time is over when both branches hang. */
    async function untilAborted(signal: AbortSignal): Promise<never> {
      if (++hanging === 2) setImmediate(() => vi.advanceTimersByTime(limits.seconds * 1000))
      return await new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
    }
    const { sampleSeveral: _several, ...alone } = slow
    const said = call('calculate', { expression: '1+1' })
    const first: Policy = {
      ...alone,
      async sample(request, given) {
        const sample = await slow.sample(request, given)
        if (request.key.turn > 0 || sample.kind !== 'tokens') return sample
        const ids = renderer.tokenizer.encode(said)
        const logprobs = new Float32Array(ids.length)
        return { ...sample, segment: { ...sample.segment, ids, logprobs } }
      },
    }
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const tree = await roll('fixed:width=2,depth=1', 1, { policy: first, limits, leaves: 2 })
    expect(tree.trajectories).toHaveLength(2)
    for (const { outcome, turns } of tree.trajectories) {
      // A slow server is not the policy's fault.
      expect(outcome).toEqual({ kind: 'aborted', by: 'time' })
      expect(turns).toHaveLength(1)
    }
  })

  it('is graded only where somebody says that it is part of the task', () => {
    const outcomeWith = (onTime: 'graded' | 'ungraded') =>
      outcomeOf(undefined, AbortSignal.abort(new TimeIsUp(3, onTime)))
    expect(outcomeWith('graded')).toEqual({ kind: 'truncated', limit: 'time' })
    expect(outcomeWith('ungraded')).toEqual({ kind: 'aborted', by: 'time' })
  })
})
