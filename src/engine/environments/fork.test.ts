import type { Message, Reply, ToolCall } from '@espalier/text'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { Environment, OpenCall, Task, Transition, World } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { keyValue } from './built-in/key-value.ts'
import { environment } from './environment.ts'
import { forkWorld, recordOfTrajectory, recordWorld, replayWorld, withFork } from './fork.ts'
import type { WorldBehaviour } from './opened-world.ts'
import { replyOf } from './reply.ts'
import { tool } from './tools/tool.ts'

const signal = new AbortController().signal
const opening: readonly Message[] = [{ role: 'user', content: 'go' }]
const task: Task<object> = { id: 'task' as TaskId, data: {} }

const openCall = (): OpenCall => ({
  seed: 5,
  signal,
  lanes: makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 }),
})

function worldsOf(behaviour: () => WorldBehaviour<unknown>): Environment<object> {
  return environment({
    name: 'test',
    task: z.object({}),
    open: () => ({ opening, ...behaviour() }),
  })
}

function counting(): WorldBehaviour<unknown> {
  let count = 0
  const add = tool({ inputSchema: z.object({ by: z.int() }), execute: ({ by }) => (count += by) })
  return { tools: { add }, report: () => count, anchor: () => `${count}` }
}

async function act(world: World, replies: readonly Reply[]): Promise<Transition[]> {
  const transitions: Transition[] = []
  for (const [turn, reply] of replies.entries()) {
    transitions.push(await world.step(reply, { signal, messages: opening, turn }))
  }
  return transitions
}

const add = (by: number): Reply => replyOf('', { tool: 'add', input: { by } })

describe('a fork by replay', () => {
  it('[R3] stands where the world stood, and goes its own way', async () => {
    const counter = worldsOf(counting)
    const call = openCall()
    const world = recordWorld(await counter.open(task, call))
    await act(world, [add(1), add(2), replyOf('', { malformed: '<add' })])
    const twin = await forkWorld(world, { ...call, environment: counter, task })
    await act(world, [add(10)])
    await act(twin, [add(100)])
    expect([await world.report?.(), await twin.report?.()]).toEqual([13, 103])
    expect(twin.record().steps).toHaveLength(4)
    expect(twin.record().steps[2]).toEqual(world.record().steps[2])
  })

  it('[R3] is what withFork gives every world, forks of forks too', async () => {
    const world = await withFork(worldsOf(counting)).open(task, openCall())
    await act(world, [add(1)])
    const child = await world.fork!({ signal })
    await act(child, [add(2)])
    const grandchild = await child.fork!({ signal })
    await act(grandchild, [add(4)])
    const worlds = [world, child, grandchild]
    expect(await Promise.all(worlds.map(each => each.report?.()))).toEqual([1, 3, 7])
  })

  it('[R3] is what a world that has reported gives: whoever goes on finds no trace of its report', async () => {
    const judged = (tests: string[] = []): WorldBehaviour<unknown> => ({
      tools: { look: tool({ inputSchema: z.object({}), execute: () => tests.length }) },
      report: () => tests.push('secret'),
      fork: () => judged([...tests]),
    })
    const world = await withFork(worldsOf(judged)).open(task, openCall())
    const look = replyOf('', { tool: 'look', input: {} })
    await act(world, [look])
    expect(await world.report?.()).toBe(1)
    for (const fork of [await world.fork!({ signal }), await world.forkAt!(1, { signal })]) {
      expect((await act(fork, [look]))[0]?.calls?.[0]?.output).toBe('0')
    }
  })

  it('feeds back outside tools and users, and never asks them again', async () => {
    const outside = vi.fn((): string => `weather ${outside.mock.calls.length}`)
    const ask = vi.fn(async (text: string) => `${text}? ${ask.mock.calls.length}`)
    const heard: unknown[] = []
    const talking = worldsOf(() => ({
      tools: { weather: tool({ inputSchema: z.object({}), execute: outside, effects: 'outside' }) },
      respond: { effects: 'outside', respond: ask, recall: (...said) => heard.push(said) },
    }))
    const call = openCall()
    const world = recordWorld(await talking.open(task, call))
    await act(world, [replyOf('', { tool: 'weather' }), replyOf('warm')])
    const twin = await forkWorld(world, { ...call, environment: talking, task })
    expect(twin.record()).toEqual(world.record())
    expect([outside.mock.calls.length, ask.mock.calls.length]).toEqual([1, 1])
    expect(heard).toEqual([['warm', 'warm? 1']])
    await act(twin, [replyOf('cold')])
    expect(ask).toHaveBeenCalledTimes(2)
  })

  it('[O1] that diverges is a failure of the environment that says where; nothing is left open', async () => {
    let opened = 0
    const dispose = vi.fn()
    const drifting = worldsOf(() => {
      opened++
      const look = tool({
        inputSchema: z.object({}),
        execute: () => `the shelf holds ${opened} pears`,
      })
      return { tools: { look }, dispose }
    })
    const call = openCall()
    const world = recordWorld(await drifting.open(task, call))
    const look = replyOf('', { tool: 'look' })
    await act(world, [replyOf('', { malformed: 'x' }), look])
    const fork = forkWorld(world, { ...call, environment: drifting, task })
    await expect(fork).rejects.toMatchObject({
      boundary: 'environment',
      message: expect.stringMatching(
        /at turn 1: message 0 \(tool\) differs from character 16 on: .*1 pears.*2 pears/,
      ),
    })
    expect(dispose).toHaveBeenCalledOnce()
    expect([call.lanes.environment.running, call.lanes.tools.running]).toEqual([0, 0])
  })

  it('notices another opening, reward, anchor or end', async () => {
    const call = openCall()
    const record = {
      opening: [{ role: 'user', content: 'go' }] as const,
      steps: [{ action: replyOf('done'), transition: { kind: 'end', reward: 2 } as const }],
    }
    const replay = (behaviour: () => WorldBehaviour<unknown>, more = {}) =>
      replayWorld(worldsOf(behaviour), task, { ...call, record: { ...record, ...more } })
    await expect(replay(() => ({ stepReward: () => 2 }))).resolves.toBeDefined()
    await expect(replay(() => ({ stepReward: () => 1 }))).rejects.toThrow(
      /its reward differs.*"2".*"1"/,
    )
    await expect(replay(() => ({ stepReward: () => 2, anchor: () => 'a' }))).rejects.toThrow(
      /its anchor differs/,
    )
    await expect(replay(() => ({ respond: () => 'more' }))).rejects.toThrow(/number of messages/)
    const other = { opening: [{ role: 'user', content: 'stop' }] as const }
    await expect(replay(() => ({}), other)).rejects.toThrow(/at its opening/)
  })
})

it('a native fork equals a replay, whatever was done before', async () => {
  const key = fc.constantFrom('a', 'b', 'c')
  const scripted = fc.oneof(
    fc.record({ tool: fc.constant('put'), input: fc.record({ key, value: fc.string() }) }),
    fc.record({ tool: fc.constantFrom('get', 'remove', 'nonsense'), input: fc.record({ key }) }),
    fc.record({ malformed: fc.string({ minLength: 1 }) }),
  )
  const store = keyValue()
  const stored = { id: 'task' as TaskId, data: store.readTask({ prompt: 'x', answer: '' }) }
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(scripted, { minLength: 1, maxLength: 3 }), { maxLength: 8 }),
      async turns => {
        const call = openCall()
        const world = recordWorld(await store.open(stored, call))
        await act(
          world,
          turns.map(calls => replyOf('', ...calls)),
        )
        const native = await forkWorld(world, { ...call, environment: store, task: stored })
        const replayed = await replayWorld(store, stored, { ...call, record: world.record() })
        expect(await native.report?.()).toEqual(await world.report?.())
        expect(await replayed.report?.()).toEqual(await world.report?.())
        expect(replayed.record()).toEqual(native.record())
      },
    ),
    { seed: 1, numRuns: process.env.ESPALIER_SOAK ? 2000 : 50 },
  )
})

it('a stored trajectory is replayed from its messages, up to any turn it went on from', async () => {
  const counter = worldsOf(counting)
  const call = openCall()
  const world = recordWorld(await counter.open(task, call))
  const replies = [add(1), add(2), replyOf('3')]
  const transitions = await act(world, replies)
  const messages: Message[] = [...opening]
  const turns = replies.map((reply, turn) => {
    const before = messages.length
    messages.push(reply.message, ...(transitions[turn]?.observed ?? []))
    const finish = { kind: 'stop' } as const
    return {
      from: 0,
      end: { node: 0, offset: 0 },
      finish,
      messages: before,
      anchor: transitions[turn]!.anchor!,
    }
  })
  const calls = transitions.flatMap(transition => transition.calls ?? [])
  const stored = { messages, turns, calls }
  const record = recordOfTrajectory(stored, { turns: 2, replyAt: turn => replies[turn]! })
  expect(record).toEqual({ opening, steps: world.record().steps.slice(0, 2) })
  const twin = await replayWorld(counter, task, { ...call, record })
  expect(await twin.report?.()).toBe(3)
  const tooFar = () => recordOfTrajectory(stored, { turns: 3, replyAt: turn => replies[turn]! })
  expect(tooFar).toThrow(/has no answer to turn 2/)
})

it('turns that recalled what was condensed are no part of what the world is replayed with', async () => {
  const counter = worldsOf(counting)
  const call = openCall()
  const world = recordWorld(await counter.open(task, call))
  const reply = add(1)
  const [transition] = await act(world, [reply])
  const asking: ToolCall = {
    id: 'r',
    type: 'function',
    function: { name: 'recall', arguments: '{"block": 1}' },
  }
  const given: Message = {
    role: 'tool',
    tool_call_id: 'r',
    name: 'recall',
    content: 'the original',
  }
  const only: Message = { role: 'assistant', content: null, tool_calls: [asking] }
  const both: Reply = {
    message: { ...reply.message, tool_calls: [...(reply.message.tool_calls ?? []), asking] },
    calls: [...reply.calls, { kind: 'parsed', id: 'r', name: 'recall', arguments: '{"block": 1}' }],
  }
  const messages = [...opening, only, given, both.message, ...transition!.observed!, given, only]
  const recalled = {
    id: 'r',
    tool: 'recall',
    input: {},
    output: '',
    seconds: 0,
    isRecall: true,
  } as const
  const calls = [
    { ...recalled, turn: 0 },
    { ...recalled, turn: 1 },
    ...transition!.calls!.map(record => ({ ...record, turn: 1 })),
  ]
  const turn = { from: 0, end: { node: 0, offset: 0 }, finish: { kind: 'stop' } as const }
  const starts = [opening.length, opening.length + 2, messages.length - 1]
  const turns = starts.map(start => ({ ...turn, messages: start }))
  const replies = [{ message: only as Reply['message'], calls: [] }, both]
  const record = recordOfTrajectory(
    { messages, turns, calls },
    { turns: 2, replyAt: index => replies[index]! },
  )
  expect(record.steps).toHaveLength(1)
  expect(record.steps[0]!.action).toEqual(reply)
  expect(record.steps[0]!.transition.observed).toEqual(transition!.observed)
})
