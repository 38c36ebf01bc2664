import type { Message } from '@espalier/text'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { attemptAt, contextOf, openByteRenderer, script } from '../../../test/rolling.ts'
import type { Environment, Transition } from '../../base/core/environment.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { disposalSeconds } from '../../base/core/process/deadline.ts'
import type { RewardPart } from '../../base/core/reward.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import { environment } from '../environments/environment.ts'
import { withFork } from '../environments/fork.ts'
import type { WorldBehaviour } from '../environments/opened-world.ts'
import { defaultRewardSeconds } from './attempt.ts'
import { rollChain } from './chain.ts'
import { scoreTree } from './score.ts'
import { rollTree } from './tree.ts'

const renderer = await openByteRenderer()
const opening: readonly Message[] = [{ role: 'user', content: 'go' }]
const never = (): Promise<never> => new Promise(() => {})

const worldOf = (more: WorldBehaviour<unknown> & { readonly opening?: readonly Message[] }) =>
  environment({ name: 'bad', task: z.object({}), open: () => ({ opening, ...more }) })

async function rollIn(bad: Environment, roll = rollChain): Promise<Trajectory> {
  const policy = script(renderer, ['done<|im_end|>', 'done<|im_end|>'])
  const context = contextOf({ environment: bad, renderer, policy })
  return (await roll(context, attemptAt(bad, {}))).trajectories[0]!
}

async function scoreBy(reward: Readonly<Record<string, unknown>>, parts: object = {}) {
  const bad = worldOf({})
  const policy = script(renderer, ['done<|im_end|>'])
  const attempt = attemptAt(bad, {})
  const tree = await rollChain(contextOf({ environment: bad, renderer, policy }), attempt)
  const [scored] = await scoreTree(tree, attempt.task, {
    reward: reward as Readonly<Record<string, RewardPart>>,
    lanes: makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 }),
    signal: new AbortController().signal,
    ...parts,
  })
  return scored!
}

/** Lets the seconds of whatever is under way pass at once. */
async function passing<T>(seconds: number, work: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const working = work()
  let isDone = false
  const done = (): void => {
    isDone = true
  }
  working.then(done, done)
  await vi.waitUntil(() => isDone || vi.getTimerCount() > 0)
  await vi.advanceTimersByTimeAsync(seconds * 1000)
  return await working
}

describe('a reward', () => {
  it('[O1] that never answers fails its attempt when its time is over', async () => {
    let heard: AbortSignal | undefined
    const slow = (_: unknown, { signal }: { signal: AbortSignal }) => {
      heard = signal
      return never()
    }
    const scored = await passing(defaultRewardSeconds, () => scoreBy({ slow }))
    const message = `reward part "slow" took longer than ${defaultRewardSeconds} s`
    expect(scored).toMatchObject({ outcome: { kind: 'failed', boundary: 'reward', message } })
    expect(heard?.aborted).toBe(true)
  })

  it('[O1] that never answers keeps no other reward from its lane', async () => {
    const both = await scoreBy({ slow: never, quick: () => 1 }, { rewardSeconds: 0.01 })
    expect(both).toMatchObject({ outcome: { boundary: 'reward' } })
  })

  it('that never answers is not waited for when the run is stopped', async () => {
    const stop = new AbortController()
    const slow = () => {
      queueMicrotask(() => stop.abort(new Error('interrupted')))
      return never()
    }
    const scored = await scoreBy({ slow }, { signal: stop.signal })
    expect(scored).toMatchObject({ outcome: { kind: 'aborted', by: 'interrupted' } })
  })

  it.each([
    ['a text', () => '1', 'reward part "r" gave the text "1", not a finite number'],
    ['an object', () => Object.create(null), 'reward part "r" gave an object, not a finite number'],
    ['NaN', () => Number.NaN, 'reward part "r" gave NaN, not a finite number'],
    ['no function', { weight: 1 }, 'reward part "r" has no function "score"'],
    [
      'a weight that is none',
      { weight: Number.NaN, score: (): number => 1 },
      'reward part "r" has weight NaN, not a finite number',
    ],
    [
      'a weight that is a text',
      { weight: '1', score: (): number => 1 },
      'reward part "r" has weight the text "1", not a finite number',
    ],
  ])('[O1] with %s fails its attempt and names the part', async (_, part, message) => {
    const scored = await scoreBy({ r: part })
    expect(scored).toMatchObject({ outcome: { kind: 'failed', boundary: 'reward' } })
    expect(scored).toMatchObject({ outcome: { message: expect.stringContaining(message) } })
  })
})

describe('a world', () => {
  it('[O1] that is never disposed of is left when its time is over, and its attempt counts', async () => {
    const ended = await passing(disposalSeconds, () => rollIn(worldOf({ dispose: never })))
    expect(ended.outcome).toEqual({ kind: 'completed' })
    const detail = `Error: disposing of the world took longer than ${disposalSeconds} s`
    expect(ended.events).toMatchObject([{ kind: 'dispose-failed', detail }])
  })

  it('[O1] that throws an object without a word as it is disposed of counts', async () => {
    const dispose = () => Promise.reject(Object.create(null))
    const ended = await rollIn(worldOf({ dispose }))
    expect(ended.outcome).toEqual({ kind: 'completed' })
    expect(ended.events).toMatchObject([{ detail: 'an object without a message' }])
  })

  it('[O1] that is never disposed of is left in a tree too', async () => {
    const bad = withFork(worldOf({ dispose: never }))
    const grow = rollTree({ branch: { name: 'none' }, leaves: 1 })
    const ended = await passing(disposalSeconds, () => rollIn(bad, grow))
    expect(ended.outcome).toEqual({ kind: 'completed' })
    expect(ended.events).toMatchObject([{ kind: 'dispose-failed' }])
  })

  it('is disposed of where the tree cannot begin in it', async () => {
    const dispose = vi.fn()
    const strange = [{ role: 'usr', content: 'x' }] as unknown as readonly Message[]
    const bad = withFork(worldOf({ opening: strange, dispose }))
    const ended = await rollIn(bad, rollTree({ branch: { name: 'none' }, leaves: 1 }))
    expect(ended.outcome).toMatchObject({ kind: 'failed', boundary: 'environment' })
    expect(dispose).toHaveBeenCalledOnce()
  })

  it('[O1] that speaks in a role which does not exist fails, in its opening and later', async () => {
    const strange = [{ role: 'usr', content: 'x' }] as unknown as readonly Message[]
    const step = (): Transition => ({ kind: 'end', observed: strange })
    const message =
      "The world said something as 'usr'; the roles are system, developer, user, assistant, tool."
    for (const bad of [worldOf({ opening: strange }), worldOf({ step })]) {
      const { outcome } = await rollIn(bad)
      expect(outcome).toEqual({ kind: 'failed', boundary: 'environment', message })
    }
  })

  it.each([undefined, {}, { kind: 'over' }, { kind: 'end', observed: 'text' }])(
    '[O1] that answers a step with %j fails, and harms no sibling',
    async transition => {
      const good = worldOf({})
      const bad: Environment = {
        ...good,
        open: async (task, call) => {
          const world = await good.open(task as never, call)
          return { ...world, step: async () => transition as unknown as Transition }
        },
      }
      const { outcome } = await rollIn(bad)
      expect(outcome).toMatchObject({ kind: 'failed', boundary: 'environment' })
    },
  )
})
