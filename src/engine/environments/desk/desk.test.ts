import type { Reply } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { demonstrateDesk, novicePlayer, shortcuts } from '../../../../test/desk-players.ts'
import type { Task } from '../../../base/core/environment.ts'
import { makeLanes } from '../../../base/core/lane.ts'
import { checkEnvironment } from '../check.ts'
import { type Player, playWorld, scorePlay } from '../play.ts'
import { replyOf } from '../reply.ts'
import { type DeskOptions, desk } from './desk.ts'
import { type DeskTask, rightDecision } from './task.ts'

const { signal } = new AbortController()
const lanes = makeLanes({ policy: 4, tools: 4, environment: 4, reward: 4 })
const open = { signal, seed: 1, lanes }

function tasksOf(options: DeskOptions, count: number, split = 'train'): readonly Task<DeskTask>[] {
  return desk(options).makeTasks!({ count, seed: 5, split })
}

async function meanReward(
  player: Player<DeskTask>,
  tasks: readonly Task<DeskTask>[],
  options: DeskOptions = {},
): Promise<number> {
  const environment = desk(options)
  let total = 0
  for (const task of tasks) {
    total += (await scorePlay(environment, task, { ...open, player, turns: 60 })).total
  }
  return total / tasks.length
}

/** Plays fixed replies and gives the reward. */
async function rewardOf(task: Task<DeskTask>, replies: readonly Reply[]): Promise<number> {
  const player: Player<DeskTask> = ({ turn }) => replies[turn]
  return (await scorePlay(desk(), task, { ...open, player, turns: replies.length })).total
}

function taskWhere(is: (data: DeskTask) => boolean): Task<DeskTask> {
  return tasksOf({ level: 1 }, 400).find(({ data }) => is(data))!
}

const decided = ({ data }: Task<DeskTask>) => rightDecision(data, data.requests[0]!)

describe('the desk', () => {
  it('passes what every environment passes', async () => {
    const results = await checkEnvironment(desk(), {
      tasks: tasksOf({}, 12),
      demonstrate: demonstrateDesk,
      seed: 3,
    })
    expect(results.filter(({ kind }) => kind === 'failed')).toEqual([])
    const shown = results.find(({ name }) => name === 'reward of demonstrations')
    expect(shown?.values?.mean).toBe(1)
  })

  it('makes thousands of distinct tasks, none of them in both splits', () => {
    const train = tasksOf({}, 4000).map(({ data }) => JSON.stringify(data))
    const heldOut = tasksOf({}, 1000, 'held-out').map(({ data }) => JSON.stringify(data))
    const other = desk().makeTasks!({ count: 1000, seed: 6, split: 'held-out' })
    expect(new Set([...train, ...heldOut]).size).toBe(5000)
    const seen = new Set(train)
    expect(other.filter(({ data }) => seen.has(JSON.stringify(data)))).toEqual([])
    expect(tasksOf({}, 50)).toEqual(tasksOf({}, 50))
  })

  it('is solved by who knows the rules, and by no shortcut', async () => {
    const tasks = tasksOf({}, 120)
    expect(await meanReward(demonstrateDesk, tasks)).toBe(1)
    const earned = await Promise.all(Object.values(shortcuts).map(each => meanReward(each, tasks)))
    expect(Math.max(...earned)).toBeLessThan(0.5)
    const novice = await meanReward(novicePlayer(1), tasks)
    expect(novice).toBeGreaterThan(0.25)
    expect(novice).toBeLessThan(0.6)
  })

  it('needs every answer about equally often, by what a look-up shows', () => {
    const tasks = tasksOf({}, 2000)
    const share = (is: (task: Task<DeskTask>) => boolean) => tasks.filter(is).length / tasks.length
    expect(share(task => decided(task).kind === 'act')).toBeLessThan(0.45)
    expect(share(task => decided(task).kind === 'transfer')).toBeGreaterThan(0.15)
    for (const reason of ['pending', 'shipped', 'delivered', 'old', 'gone']) {
      const isReason = (task: Task<DeskTask>) => {
        const decision = decided(task)
        return decision.kind === 'refuse' && decision.reason === reason
      }
      expect(share(isReason)).toBeGreaterThan(0.02)
    }
  })

  it('rewards a refusal only for the one true reason', async () => {
    const task = taskWhere(data => rightDecision(data, data.requests[0]!).kind === 'refuse')
    const { reason } = decided(task) as { reason: string }
    const wrong = reason === 'shipped' ? 'old' : 'shipped'
    expect(await rewardOf(task, [replyOf(`sorry, ${reason}`)])).toBe(1)
    expect(await rewardOf(task, [replyOf(`sorry, ${wrong}`)])).toBe(0)
    expect(await rewardOf(task, [replyOf('sorry')])).toBe(0)
    expect(await rewardOf(task, [replyOf(`sorry, ${reason} or ${wrong}`)])).toBe(0)
    expect(await rewardOf(task, [replyOf('done')])).toBe(0)
  })

  it('rewards an act by the database and by what was said', async () => {
    const task = taskWhere(
      data =>
        rightDecision(data, data.requests[0]!).kind === 'act' &&
        data.requests[0]!.kind === 'address',
    )
    const { order: id, value: street } = task.data.requests[0]!
    const act = replyOf('', { tool: 'address', input: { id, street } })
    expect(await rewardOf(task, [act, replyOf('done')])).toBe(1)
    expect(await rewardOf(task, [act])).toBe(0)
    expect(await rewardOf(task, [replyOf('done')])).toBe(0)
    expect(await rewardOf(task, [act, replyOf('sorry, shipped')])).toBe(0)
    const more = replyOf('', { tool: 'cancel', input: { id } })
    expect(await rewardOf(task, [act, more, replyOf('done')])).toBe(0)
    const other = replyOf('', { tool: 'address', input: { id, street: 'nowhere' } })
    expect(await rewardOf(task, [other, replyOf('done')])).toBe(0)
  })

  it('ends at once when the customer is handed over', async () => {
    const task = taskWhere(data => rightDecision(data, data.requests[0]!).kind === 'transfer')
    await using world = await desk().open(task, open)
    const reply = replyOf('', { tool: 'transfer' })
    const { outcome, transitions } = await playWorld(world, task, {
      player: () => reply,
      turns: 5,
      signal,
    })
    expect(outcome).toEqual({ kind: 'completed' })
    expect(transitions.length).toBe(1)
  })

  it('is left by a customer whom nobody answers', async () => {
    const [task] = tasksOf({}, 1)
    await using world = await desk().open(task!, open)
    const player = () => replyOf('hm')
    const play = await playWorld(world, task!, { player, turns: 20, signal })
    expect(play.transitions.length).toBe(3)
    expect(play.outcome).toEqual({ kind: 'completed' })
  })

  it('gives the number when asked at level 2 and only the name at level 3', async () => {
    for (const [level, expected] of [
      [1, /^\d\d$/],
      [2, /^\d\d$/],
      [3, /^[A-Z]/],
    ] as const) {
      const [task] = tasksOf({ level }, 1)
      expect(/#\d\d/.test(task!.data.requests[0]!.words)).toBe(level === 1)
      await using world = await desk().open(task!, open)
      const play = await playWorld(world, task!, {
        player: () => replyOf('which order?'),
        turns: 1,
        signal,
      })
      expect(play.messages.at(-1)?.content).toMatch(expected)
    }
  })

  it('has long conversations with one customer, of twenty turns and more', async () => {
    const tasks = tasksOf({ length: 'long' }, 5)
    for (const task of tasks) {
      await using world = await desk({ length: 'long' }).open(task, open)
      const play = await playWorld(world, task, { player: demonstrateDesk, turns: 60, signal })
      expect(play.transitions.length).toBeGreaterThanOrEqual(15)
    }
    const turns = await Promise.all(
      tasks.map(async task => {
        await using world = await desk({ length: 'long' }).open(task, open)
        return (await playWorld(world, task, { player: demonstrateDesk, turns: 60, signal }))
          .transitions.length
      }),
    )
    expect(turns.reduce((sum, count) => sum + count, 0) / turns.length).toBeGreaterThan(20)
    expect(await meanReward(demonstrateDesk, tasks, { length: 'long' })).toBe(1)
    expect(await meanReward(shortcuts['always-comply']!, tasks, { length: 'long' })).toBeLessThan(
      0.6,
    )
    expect(() => desk({ length: 'long', level: 3 })).toThrow('several orders')
  })

  it('tells its rules to policies that should know them', async () => {
    const [task] = tasksOf({}, 1)
    await using told = await desk({ rules: 'told' }).open(task!, open)
    await using hidden = await desk().open(task!, open)
    expect(told.opening.map(({ role }) => role)).toEqual(['system', 'user'])
    expect(hidden.opening.map(({ role }) => role)).toEqual(['user'])
  })
})
