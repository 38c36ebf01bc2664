import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { shop } from '../../../test/fixtures/shop.ts'
import { environmentConformance } from '../../base/core/conformance/environment.conformance.ts'
import type { Environment, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { calculator } from './built-in/calculator.ts'
import { keyValue } from './built-in/key-value.ts'
import { singleTurn } from './built-in/single-turn.ts'
import { toolLoop } from './built-in/tool-loop.ts'
import { type CheckOptions, type CheckResult, checkEnvironment, checkWithin } from './check.ts'
import { environment } from './environment.ts'
import type { WorldBehaviour } from './opened-world.ts'
import { replyOf } from './reply.ts'
import { tool } from './tools/tool.ts'

const id = 'task' as TaskId
const made = { count: 5, seed: 1 }
const [calculatorEnvironment, store] = [calculator(), keyValue()]
const shopTasks = [1, 2, 3].map(wanted => ({
  id: `${wanted}` as TaskId,
  data: { stock: 2, wanted },
}))

environmentConformance(calculatorEnvironment, { tasks: calculatorEnvironment.makeTasks!(made) })
environmentConformance(store, { tasks: store.makeTasks!(made) })
environmentConformance(singleTurn(), { tasks: [{ id, data: { prompt: 'x', answer: 'y' } }] })
environmentConformance(
  toolLoop({
    tools: {
      now: tool({ inputSchema: z.object({}), execute: () => Math.random(), effects: 'outside' }),
    },
  }),
  {
    tasks: [{ id, data: { prompt: 'x', answer: 'y' } }],
  },
)
environmentConformance(shop, {
  tasks: shopTasks,
  demonstrate({ task: { data }, turn }) {
    if (turn === 0) return replyOf('', { tool: 'count' })
    if (data.wanted > data.stock) return replyOf('no')
    return turn === 1
      ? replyOf('', { tool: 'sell', input: { pears: data.wanted } })
      : replyOf('done')
  },
})

async function check(subject: Environment, options: Partial<CheckOptions<unknown>> = {}) {
  const tasks: readonly Task[] = [{ id, data: {} }]
  const results = await checkEnvironment(subject, { tasks, ...options })
  return new Map<string, CheckResult>(results.map(result => [result.name, result]))
}

function worldsOf(behaviour: () => WorldBehaviour<unknown>): Environment {
  return environment({
    name: 'test',
    task: z.object({}),
    open: () => ({ opening: [{ role: 'user', content: 'go' }], ...behaviour() }),
    reward: { none: () => 0 },
  })
}

const failing = (results: Map<string, CheckResult>): string[] =>
  [...results.values()].filter(result => result.kind === 'failed').map(result => result.name)

describe('what the checks find', () => {
  it('answers that differ from world to world', async () => {
    let looks = 0
    const look = tool({ inputSchema: z.object({}), execute: () => ++looks })
    const results = await check(worldsOf(() => ({ tools: { look } })))
    expect(failing(results)).toEqual([
      'gives the same answers to the same actions',
      'keeps worlds apart',
      'forks worlds that equal their replay',
    ])
    const { detail } = results.get('gives the same answers to the same actions')!
    expect(detail).toMatch(/went another way at turn 1/)
  })

  it('a fork that shares state with its world', async () => {
    const behaviour = (): WorldBehaviour<unknown> => {
      let count = 0
      const add = tool({ inputSchema: z.object({}), execute: () => ++count })
      const self: WorldBehaviour<unknown> = {
        tools: { add },
        report: () => count,
        fork: () => self,
      }
      return self
    }
    expect(failing(await check(worldsOf(behaviour)))).toEqual([
      'forks worlds that equal their replay',
    ])
  })

  it('nothing in worlds that their report ends, as a score ends an episode', async () => {
    const behaviour = (): WorldBehaviour<unknown> => {
      let isScored = false
      const look = tool({ inputSchema: z.object({}), execute: () => (isScored ? 'over' : 'on') })
      return {
        tools: { look },
        isOver: () => isScored,
        report: () => (isScored = true),
      }
    }
    expect(failing(await check(worldsOf(behaviour)))).toEqual([])
  })

  it('mistakes that end it in silence, or are not recorded', async () => {
    const act = tool({ inputSchema: z.object({ a: z.string() }), execute: () => '' })
    const silent = worldsOf(() => ({ tools: { act }, step: () => ({ kind: 'end' }) }))
    expect((await check(silent)).get('answers mistakes with observations')).toMatchObject({
      kind: 'failed',
      detail: 'Nothing was said of a call that is wrong (unknown-tool).',
    })
    const kind = 'continue' as const
    const deaf = worldsOf(() => ({
      tools: { act },
      step: () => ({ kind, observed: [{ role: 'user', content: 'hm' }] }),
    }))
    expect((await check(deaf)).get('answers mistakes with observations')?.detail).toMatch(
      /not recorded/,
    )
  })

  it('tasks that anything passes for, worlds that ignore their signal or cannot be disposed of', async () => {
    const plain = worldsOf(() => ({}))
    const careless: Environment = {
      ...plain,
      readTask: data => data,
      async open(task, call) {
        const world = await plain.open(task, { ...call, signal: new AbortController().signal })
        const dispose = vi
          .fn()
          .mockResolvedValueOnce(undefined)
          .mockRejectedValue(new Error('twice'))
        return { ...world, [Symbol.asyncDispose]: dispose }
      },
    }
    expect(failing(await check(careless))).toEqual([
      'reads its tasks and refuses what is none',
      'opens worlds and disposes of them',
      'stops opening when it is told to',
    ])
  })

  it('what doing nothing, refusing and demonstrations earn', async () => {
    const options = { tasks: shopTasks, demonstrate: () => replyOf('') }
    const results = await check(shop as Environment, options as Partial<CheckOptions<unknown>>)
    expect(results.get('reward of doing nothing')).toMatchObject({
      kind: 'measured',
      values: { mean: 0 },
    })
    expect(results.get('reward of demonstrations')).toMatchObject({ kind: 'failed' })
    const broken = environment({
      name: 'broken',
      task: z.object({}),
      open: () => ({ opening: [{ role: 'user', content: 'go' }] }),
      reward: { share: () => Number.NaN },
    })
    expect(failing(await check(broken))).toEqual([
      'reward of doing nothing',
      'reward of always refusing',
    ])
  })
})

it('measures openings in the tokens of a renderer', async () => {
  const renderer = { render: (messages: readonly unknown[]) => new Int32Array(messages.length * 7) }
  const results = await check(
    worldsOf(() => ({})),
    { renderer: renderer as never },
  )
  expect(results.get('tokens per opening')).toMatchObject({ kind: 'measured', values: { mean: 7 } })
})

describe('an environment that hangs', () => {
  const never = (): Promise<never> => new Promise(() => {})
  const opening = [{ role: 'user', content: 'go' }] as const
  const base = { name: 'hangs', task: z.object({}), open: () => ({ opening }) }
  const failuresOf = async (more: object) => {
    const hanging = environment({ ...base, ...more })
    const results = await checkWithin(0.02, hanging, { tasks: [{ id: 'a', data: {} }] })
    return results.filter(({ kind }) => kind === 'failed').map(({ detail }) => detail)
  }

  it.each([
    ['opening', { open: never }, 'opening a world took longer than 0.02 s'],
    [
      'disposing',
      { open: () => ({ opening, dispose: never }) },
      'disposing of a world took longer',
    ],
    ['a step', { open: () => ({ opening, step: never }) }, 'a step took longer'],
    ['its report', { open: () => ({ opening, report: never }) }, 'the report took longer'],
    ['its reward', { reward: { slow: never } }, 'reward part "slow" took longer'],
  ])('fails once, in %s, and the rest is not tried', async (_, more, message) => {
    expect(await failuresOf(more)).toEqual([expect.stringContaining(message)])
  })

  it('has worlds that open too late disposed of', async () => {
    const dispose = vi.fn()
    const open = () => new Promise(resolve => setTimeout(() => resolve({ opening, dispose }), 100))
    await failuresOf({ open })
    await vi.waitUntil(() => dispose.mock.calls.length > 0)
  })
})
