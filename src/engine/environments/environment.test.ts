import type { Message, Reply } from '@espalier/text'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { shop } from '../../../test/fixtures/shop.ts'
import type { OpenCall, StepCall, Task, World } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { environment } from './environment.ts'
import type { OpenedWorld } from './opened-world.ts'
import { replyOf } from './reply.ts'
import { tool } from './tools/tool.ts'

const opening: readonly Message[] = [{ role: 'user', content: 'go' }]

const openCall = (signal = new AbortController().signal): OpenCall => ({
  seed: 7,
  signal,
  lanes: makeLanes({ policy: 4, tools: 4, environment: 4, reward: 4 }),
})

const stepCall = (turn = 0): StepCall => ({ signal: openCall().signal, messages: opening, turn })

function taskOf<Data>(data: Data): Task<Data> {
  return { id: 'task' as TaskId, data }
}

function open(world: OpenedWorld<unknown>, more: object = {}): Promise<World> {
  const made = environment({ name: 'test', task: z.object({}), open: () => world, ...more })
  return made.open(taskOf({}), openCall())
}

async function stepAll(world: World, ...replies: readonly Reply[]) {
  const transitions = []
  for (const [turn, reply] of replies.entries())
    transitions.push(await world.step(reply, stepCall(turn)))
  return transitions
}

describe('the front-page example', () => {
  it('opens, shows its tools, sells and reports', async () => {
    await using world = await shop.open(taskOf({ stock: 5, wanted: 2 }), openCall())
    expect(world.opening).toEqual([
      { role: 'user', content: 'sell 2 pears, or say no if there are too few' },
    ])
    expect(world.tools.map(tool => tool.function.name)).toEqual(['count', 'sell'])
    const transitions = await stepAll(
      world,
      replyOf('', { tool: 'count' }),
      replyOf('', { tool: 'sell', input: { pears: 2 } }),
      replyOf('done'),
    )
    expect(transitions.map(({ kind }) => kind)).toEqual(['continue', 'continue', 'end'])
    expect(transitions[1]?.observed?.[0]?.content).toBe('3')
    expect(await world.report?.()).toEqual({ left: 3 })
  })

  it('reads tasks and says what is wrong with them', () => {
    expect(shop.readTask({ stock: 1, wanted: 2 })).toEqual({ stock: 1, wanted: 2 })
    expect(() => shop.readTask({ stock: 'many' })).toThrow(
      /Not a task of environment "shop": stock: /,
    )
  })
})

describe('a turn without a call', () => {
  it('is the answer, by default', async () => {
    const [end] = await stepAll(await open({ opening }), replyOf('42'))
    expect(end).toEqual({ kind: 'end' })
  })

  it('is a reply where somebody responds, until nothing comes back', async () => {
    const respond = (text: string) => (text === 'bye' ? undefined : `you said ${text}`)
    const [first, second] = await stepAll(
      await open({ opening, respond }),
      replyOf('hi'),
      replyOf('bye'),
    )
    expect(first).toEqual({
      kind: 'continue',
      observed: [{ role: 'user', content: 'you said hi' }],
    })
    expect(second).toEqual({ kind: 'end' })
  })

  it('[O1] fails at the user where responding throws', async () => {
    const respond = () => Promise.reject(new Error('no line'))
    const world = await open({ opening, respond })
    await expect(world.step(replyOf('hi'), stepCall())).rejects.toMatchObject({ boundary: 'user' })
  })

  it('[O2] is a miss where there is a nudge; misses in a row end it by their limit', async () => {
    const look = tool({ inputSchema: z.object({}), execute: () => 'seen' })
    const nudge = { text: 'use a tool', misses: 2 }
    const world = await open({ opening, tools: { look } }, { nudge })
    const miss = replyOf('hm')
    const transitions = await stepAll(world, miss, replyOf('', { tool: 'look' }), miss, miss)
    expect(transitions).toMatchObject([
      { kind: 'continue', observed: [{ role: 'user', content: 'use a tool' }] },
      { kind: 'continue', observed: [{ role: 'tool', content: 'seen' }] },
      { kind: 'continue' },
      { kind: 'end', limit: 'misses' },
    ])
  })

  it('cannot be both', async () => {
    const more = { nudge: { text: '', misses: 1 } }
    await expect(open({ opening, respond: () => '' }, more)).rejects.toThrow(/both a reply/)
  })
})

describe('a world', () => {
  it('ends when it is over, with what its tools still said, step rewards and anchors', async () => {
    let left = 2
    const take = tool({ inputSchema: z.object({}), execute: () => --left })
    const world = await open({
      opening,
      tools: { take },
      isOver: () => left === 0,
      anchor: () => `left ${left}`,
      stepReward: ({ calls, turn }) => calls.length + turn,
    })
    const transitions = await stepAll(
      world,
      replyOf('', { tool: 'take' }),
      replyOf('', { tool: 'take' }),
    )
    expect(transitions).toMatchObject([
      { kind: 'continue', anchor: 'left 2', reward: 1 },
      { kind: 'end', anchor: 'left 1', reward: 2, observed: [{ content: '0' }] },
    ])
    await expect(world.step(replyOf(''), stepCall())).rejects.toThrow(/stepped after it had ended/)
  })

  it.each([
    ['isOver', 'a promise', { isOver: async () => false }],
    ['anchor', 'an object', { anchor: () => ({ left: 2 }) }],
  ])('whose %s() gives %s is refused at its step', async (method, what, wrong) => {
    const take = tool({ inputSchema: z.object({}), execute: () => 1 })
    const world = await open({ opening, tools: { take }, ...(wrong as object) })
    const step = world.step(replyOf('', { tool: 'take' }), stepCall())
    await expect(step).rejects.toThrow(`${method}() of a world gave ${what}`)
  })

  it('whose tools are a list, or nothing, is refused', async () => {
    const take = tool({ inputSchema: z.object({}), execute: () => 1 })
    const wrong = (tools: unknown) => open({ opening, tools } as OpenedWorld<undefined>)
    await expect(wrong([take])).rejects.toThrow('are a list; they are an object, by name')
    await expect(wrong({ take: null })).rejects.toThrow('Tool "take" has no execute')
  })

  it('whose report contains itself is refused with the place', async () => {
    const report: { of: unknown[] } = { of: [] }
    report.of.push(report)
    const world = await open({ opening, report: () => report })
    await expect(world.report?.()).rejects.toThrow(/^report\.of\[0\]\.of.*contains itself/)
  })

  it('may take its steps itself, and still have its calls run', async () => {
    const look = tool({ inputSchema: z.object({}), execute: () => 'seen' })
    const world = await open({
      opening,
      tools: { look },
      async step(action, call) {
        const { records } = await call.runCalls(action.calls, call)
        return { kind: 'end', calls: records, reward: 5 }
      },
    })
    const [end] = await stepAll(world, replyOf('', { tool: 'look' }))
    expect(end).toMatchObject({ kind: 'end', reward: 5, calls: [{ output: 'seen' }] })
  })

  it('[R3] forks natively into worlds that go their own ways', async () => {
    const make = (left: number): OpenedWorld<{ left: number }> => {
      const state = { left }
      const take = tool({ inputSchema: z.object({}), execute: () => --state.left })
      return { opening, tools: { take }, report: () => state, fork: () => make(state.left) }
    }
    const world = await open(make(3))
    await stepAll(world, replyOf('', { tool: 'take' }))
    const twin = await world.fork!(openCall())
    await stepAll(twin, replyOf('', { tool: 'take' }))
    expect([await world.report?.(), await twin.report?.()]).toEqual([{ left: 2 }, { left: 1 }])
  })

  it('gives only plain JSON as its report', async () => {
    const world = await open({ opening, report: () => ({ at: [new Date(0)] }) })
    await expect(world.report?.()).rejects.toThrow('report.at[0] is a Date, not plain JSON')
    const other = await open({ opening, report: () => ({ share: Number.NaN }) })
    await expect(other.report?.()).rejects.toThrow('report.share is NaN')
  })

  it('is disposed of once, last opened first', async () => {
    const order: string[] = []
    const made = environment({
      name: 'test',
      task: z.object({}),
      open({ defer }) {
        defer(() => void order.push('pool'))
        return { opening, dispose: () => void order.push('world') }
      },
    })
    const world = await made.open(taskOf({}), openCall())
    await world[Symbol.asyncDispose]()
    await world[Symbol.asyncDispose]()
    expect(order).toEqual(['world', 'pool'])
  })

  it.each<[string, () => OpenedWorld<undefined>]>([
    [
      'throws',
      () => {
        throw new Error('no')
      },
    ],
    ['opens with nothing', () => ({ opening: [] })],
    [
      'offers a tool that is none',
      () => ({ opening, tools: { ask: { inputSchema: z.object({}) } } }),
    ],
  ])('leaves nothing behind where opening it %s', async (_, rest) => {
    const cleanUp = vi.fn()
    const made = environment({
      name: 'test',
      task: z.object({}),
      open({ defer }) {
        defer(cleanUp)
        return rest()
      },
    })
    await expect(made.open(taskOf({}), openCall())).rejects.toThrow()
    expect(cleanUp).toHaveBeenCalledOnce()
  })

  it('is not opened for a run that was stopped meanwhile', async () => {
    const stop = new AbortController()
    const dispose = vi.fn()
    const made = environment({
      name: 'test',
      task: z.object({}),
      open() {
        stop.abort(new Error('stopped'))
        return { opening, dispose }
      },
    })
    await expect(made.open(taskOf({}), openCall(stop.signal))).rejects.toBe(stop.signal.reason)
    expect(dispose).toHaveBeenCalledOnce()
  })
})

it('refuses definitions it does not understand', () => {
  const base = { name: 'x', task: z.object({}), open: () => ({ opening }) }
  const mistyped = { ...base, callz: 'one' }
  expect(() => environment(mistyped)).toThrow(/no option "callz". Known: name, task/)
  expect(() => environment({ ...base, name: '' })).toThrow(/needs a name/)
  expect(() => environment({ ...base, nudge: { text: '', misses: 0 } })).toThrow(/misses is 0/)
})

describe('a definition', () => {
  const base = { name: 'x', task: z.object({}), open: () => ({ opening }) }
  const refused = (more: object) => expect(() => environment({ ...base, ...more }))

  it('without a task schema or a way to open worlds is refused', () => {
    refused({ task: undefined }).toThrow('Environment "x" needs `task`')
    refused({ task: { n: 1 } }).toThrow('needs `task`: a zod or other Standard Schema')
    refused({ open: undefined }).toThrow('Environment "x" needs `open`')
  })

  it.each([
    ['no function', { r: 1 }, /reward part "r": it is a function, or/],
    ['no score', { r: { weight: 1 } }, /reward part "r": it is a function, or \{ weight, score \}/],
    ['no weight', { r: { score: (): number => 1 } }, /reward part "r": its weight is undefined/],
    ['NaN as weight', { r: { weight: Number.NaN, score: (): number => 1 } }, /its weight is NaN/],
    [
      'a text as weight',
      { r: { weight: '1', score: (): number => 1 } },
      /its weight is '1'; it is a finite/,
    ],
    ['no names', () => 1, /reward is an object of named parts/],
    ['null', null, /reward is an object of named parts/],
  ])('with a reward of %s is refused, and the part is named', (_, reward, message) => {
    refused({ reward }).toThrow(message)
  })
})

describe('what open gives', () => {
  const opened = (world: unknown) => open(world as OpenedWorld<unknown>)

  it.each([null, undefined, 42])('is refused where it is %s', async world => {
    await expect(opened(world)).rejects.toThrow(`A world of "test" is ${world}; it is an object`)
  })

  it('is refused without an opening, saying what it has', async () => {
    await expect(opened({})).rejects.toThrow('has no `opening` (it has: nothing)')
    await expect(opened({ openning: opening })).rejects.toThrow('no `opening` (it has: openning)')
    await expect(opened({ opening: 'hi' })).rejects.toThrow(/`opening` .*'hi'; it is a list/)
    await expect(opened({ opening: [] })).rejects.toThrow('opened with no message')
  })

  it('is refused with a method that is misspelt, and disposed of', async () => {
    const misspelt = { opening, repport: () => ({}) }
    const message = 'A world of "test" has no method "repport". Did you mean "report"?'
    await expect(opened(misspelt)).rejects.toThrow(message)
    const fork = () => ({ dispos: () => {} })
    const world = await opened({ opening, fork })
    await expect(world.fork!(openCall())).rejects.toThrow('no method "dispos"')
  })

  it('may have members of its own, beside which its methods keep state', async () => {
    const world = await opened({
      opening,
      steps: 3,
      reports: () => 1,
      report(this: { readonly steps: number }) {
        return this.steps
      },
    })
    expect(await world.report!()).toBe(3)
  })
})
