import { describe, expect, it } from 'vitest'
import { attemptAt, call, contextOf, openByteRenderer, script } from '../../../../test/rolling.ts'
import type { Environment } from '../../../base/core/environment.ts'
import { makeLanes } from '../../../base/core/lane.ts'
import type { Gradable } from '../../../base/core/trajectory.ts'
import { calculator } from '../../environments/built-in/calculator.ts'
import { rollChain } from '../chain.ts'
import { scoreTrajectory } from '../score.ts'
import { isImpossibleJson } from './json.ts'
import { makeGuard } from './registry.ts'

const renderer = await openByteRenderer()
const world = calculator()

async function roll(guard: string, answers: readonly string[]) {
  const policy = script(renderer, answers)
  const context = contextOf({ environment: world, renderer, policy, guards: [makeGuard(guard)] })
  const tree = await rollChain(context, attemptAt(world, { prompt: '2+3?', answer: '5' }))
  return { trajectory: tree.trajectories[0]!, sampled: tree.nodes.at(-1)!.segment }
}

describe('guards', () => {
  it('set the reward of what they stop where they are told to', async () => {
    const lanes = makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
    const { signal } = new AbortController()
    const guards = [makeGuard('repetition:cycle=4,times=5,reward=-1')]
    const score = async (said: string) => {
      const { trajectory } = await roll('repetition:cycle=4,times=5', [said])
      const task = attemptAt(world, { prompt: '2+3?', answer: '5' }).task
      return await scoreTrajectory(trajectory as Gradable, task, {
        reward: world.reward as Environment['reward'],
        lanes,
        signal,
        guards,
      })
    }
    expect((await score('so ababababababababababab')).total).toBe(-1)
    expect((await score('5')).total).toBe(1)
    expect(() => makeGuard('json:reward=much')).toThrow('reward must be a number')
  })

  it('[O1] stop a sample that repeats itself, and keep what was sampled', async () => {
    const { trajectory, sampled } = await roll('repetition:cycle=4,times=5', [
      'so abababababababababababab',
    ])
    expect(trajectory.outcome).toEqual({ kind: 'truncated', limit: 'guard:repetition' })
    expect(renderer.decode(sampled.ids)).toBe('so ababababab')
    expect(trajectory.events.at(-1)!.kind).toBe('guard:repetition')
  })

  it('stop a thought without an end, and no other', async () => {
    const endless = await roll('thinking:tokens=20', [`<think>${'on and on '.repeat(9)}`])
    expect(endless.trajectory.outcome).toEqual({ kind: 'truncated', limit: 'guard:thinking' })
    const short = await roll('thinking:tokens=20', ['<think>I see</think>the answer is five'])
    expect(short.trajectory.outcome).toEqual({ kind: 'completed' })
  })

  it('stop a call that can no longer become JSON', async () => {
    const { trajectory, sampled } = await roll('json', [
      `<tool_call>\n{"name" "calculate", ${'x'.repeat(99)}`,
    ])
    expect(trajectory.outcome).toEqual({ kind: 'truncated', limit: 'guard:json' })
    expect(sampled.ids.length).toBeLessThan(60)
  })

  it('end an attempt that makes the same call again and again', async () => {
    const { trajectory } = await roll(
      'same-call:times=3',
      Array(6).fill(call('calculate', { expression: '1+1' })),
    )
    expect(trajectory.outcome).toEqual({ kind: 'truncated', limit: 'guard:same-call' })
    expect(trajectory.turns).toHaveLength(3)
  })

  it('say what is wrong with a name and an option', () => {
    expect(() => makeGuard('jsn')).toThrow(
      'No guard called "jsn". Known: repetition, thinking, json, same-call.',
    )
    expect(() => makeGuard('json:x=1')).toThrow('guard "json" has no option "x". Known: reward.')
  })
})

describe('isImpossibleJson', () => {
  const whole =
    '{"name": "a", "arguments": {"list": [1, -2.5e3, true, null, {"k": "\\"}"}], "s": ""}}'
  it('is never said of the beginning of JSON', () => {
    for (let length = 0; length <= whole.length; length++) {
      expect(isImpossibleJson(whole.slice(0, length)), whole.slice(0, length)).toBe(false)
    }
  })

  it.each([
    '{"a" 1',
    '{a: 1}',
    '{"a": 1,}',
    '[1 2]',
    '{"a": tru }',
    '{"a": 1]',
    '{,',
    '{"a": "x\ny"',
  ])('is said of %s', text => {
    expect(isImpossibleJson(text)).toBe(true)
  })
})
