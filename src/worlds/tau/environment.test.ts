import type { Reply } from '@espalier/text'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Environment, StepCall, Transition, World } from '../../base/core/environment.ts'
import type { Failure } from '../../base/core/failure.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { recordWorld, replayWorld } from '../../engine/environments/fork.ts'
import { replyOf } from '../../engine/environments/reply.ts'
import { scriptedUser, type User } from '../../engine/environments/users/user.ts'
import type { TauDomain } from './domain.ts'
import { type TauEnvironmentOptions, tauEnvironment } from './environment.ts'
import { loadTau } from './load.ts'
import type { TauReport } from './report.ts'
import type { TauTaskData } from './task.ts'

const root = 'test/fixtures/tau-checkout'
let retail: TauDomain
let airline: TauDomain

beforeAll(async () => {
  retail = await loadTau({ root, domain: 'retail' })
  airline = await loadTau({ root, domain: 'airline' })
})

const signal = new AbortController().signal
const lanes = makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
const call = { signal, seed: 7, lanes }
const stepCall: StepCall = { signal, messages: [], turn: 0 }

const polite = (): User => scriptedUser(['Hello', 'Yes', '###STOP###'])

function environmentOf(options: Partial<TauEnvironmentOptions> = {}): Environment<TauTaskData> {
  return tauEnvironment({ domain: retail, user: polite, ...options })
}

const open = (environment: Environment<TauTaskData>, data: TauTaskData): Promise<World> =>
  environment.open({ id: 'task' as TaskId, data }, call)

const step = (world: World, reply: Reply): Promise<Transition> => world.step(reply, stepCall)

const reportOf = async (world: World): Promise<TauReport> => (await world.report?.()) as TauReport

const cancel = replyOf('', {
  tool: 'cancel_pending_order',
  input: { order_id: '#W0000003', reason: 'ordered by mistake' },
})

describe('tau-bench as an environment', () => {
  it('opens with the policy and the first words of the user', async () => {
    const world = await open(environmentOf(), { split: 'test', index: 1 })
    expect(world.opening).toEqual([
      { role: 'system', content: retail.wiki },
      { role: 'user', content: 'Hello' },
    ])
    expect(world.tools).toHaveLength(16)
  })

  it('rewards the right end of a conversation', async () => {
    const environment = environmentOf()
    const world = await open(environment, { split: 'test', index: 1 })
    const first = await step(world, replyOf('It cost 18.10. Shall I cancel?'))
    expect(first).toMatchObject({ kind: 'continue', observed: [{ role: 'user', content: 'Yes' }] })
    const second = await step(world, cancel)
    expect(second.observed?.[0]).toMatchObject({ role: 'tool', name: 'cancel_pending_order' })
    expect(second.calls?.[0]).toMatchObject({ tool: 'cancel_pending_order', turn: 0 })
    const last = await step(world, replyOf('Done.'))
    expect(last).toMatchObject({ kind: 'end', observed: [{ content: '###STOP###' }] })
    const report = await reportOf(world)
    expect(report).toMatchObject({
      domain: 'retail',
      split: 'test',
      index: 1,
      reward: 1,
      task: { user_id: 'ben_fern_0002', outputs: ['18.1'] },
      source: 'user',
      user_cost: 0,
      reward_info: { reward: 1, info: { r_outputs: 1, outputs: { '18.1': true } } },
      error: null,
      user: null,
    })
    const [part] = Object.values(environment.reward) as ((input: object) => number)[]
    expect(part?.({ report })).toBe(1)
  })

  it('gives nothing, and no account, where the end was not reached', async () => {
    const world = await open(environmentOf(), { split: 'test', index: 1 })
    await step(world, cancel)
    const report = await reportOf(world)
    expect(report).toMatchObject({
      source: 'cancel_pending_order',
      reward: 0,
      user_cost: null,
      reward_info: null,
    })
  })

  it('forks world and user natively', async () => {
    const world = await open(environmentOf(), { split: 'test', index: 1 })
    await step(world, replyOf('It cost 18.1.'))
    const fork = (await world.fork?.({ signal })) as World
    await step(fork, cancel)
    for (const each of [world, fork]) await step(each, replyOf('Bye.'))
    expect([(await reportOf(world)).reward, (await reportOf(fork)).reward]).toEqual([0, 1])
  })

  it('forks by replay without asking the user again', async () => {
    const environment = environmentOf()
    const task = { id: 'task' as TaskId, data: { split: 'test', index: 1 } }
    const world = recordWorld(await environment.open(task, call))
    await world.step(replyOf('It cost 18.1. Cancel?'), stepCall)
    await world.step(cancel, stepCall)
    const silent = environmentOf({
      user: () => ({ ...polite(), open: broken, answer: async () => '###STOP###' }),
    })
    const again = await replayWorld(silent, task, { ...call, record: world.record() })
    await again.step(replyOf('Done.'), stepCall)
    expect((await reportOf(again)).reward).toBe(1)
  })

  it('makes the tasks of a split in order, and goes through them again when asked for more', () => {
    const tasks = environmentOf().makeTasks?.({ count: 4, seed: 1 }) ?? []
    expect(tasks.map(task => task.id)).toEqual([
      'retail/test/0',
      'retail/test/1',
      'retail/test/2',
      'retail/test/0/1',
    ])
    const train = environmentOf({ split: 'train' })
    expect(train.makeTasks?.({ count: 1, seed: 1 })[0]?.data).toEqual({ split: 'train', index: 0 })
    expect(train.splits).toEqual(['train', 'test', 'dev'])
  })

  it('refuses tasks and splits that do not exist', () => {
    expect(() => environmentOf().readTask({ index: 9 })).toThrow('has tasks 0 to 2, not 9')
    expect(() => environmentOf().readTask({ prompt: 'x' })).toThrow('has an `index`')
    expect(() => environmentOf().readTask({ split: 'no', index: 0 })).toThrow('Known: test, train')
    expect(() => environmentOf({ split: 'no' })).toThrow('has no split "no"')
  })
})

const broken = async (): Promise<never> => {
  throw new Error('the user is away')
}

describe('what goes wrong', () => {
  it('is a failure of the user where the user fails, never a reward of 0', async () => {
    const away: User = { ...polite(), open: broken }
    const opening = open(environmentOf({ user: () => away }), { split: 'test', index: 0 })
    const failure = (await opening.catch((error: unknown) => error)) as Failure
    expect([failure.boundary, failure.message]).toEqual(['user', 'the user is away'])
    const mute: User = { ...polite(), answer: broken }
    const world = await open(environmentOf({ user: () => mute }), { split: 'test', index: 0 })
    await expect(step(world, replyOf('Hello?'))).rejects.toMatchObject({ boundary: 'user' })
  })

  it('is an observation where the policy is at fault', async () => {
    const world = await open(environmentOf(), { split: 'test', index: 0 })
    const malformed = await step(world, replyOf('', { malformed: '{"na', problem: 'cut short' }))
    expect(malformed.calls?.[0]).toMatchObject({
      problem: 'malformed-call',
      output: 'Error: cut short',
    })
    const unknown = await step(world, replyOf('', { tool: 'fly', input: {} }))
    expect(unknown.calls?.[0]).toMatchObject({
      problem: 'unknown-tool',
      output: 'Unknown action fly',
    })
    const list = await step(world, replyOf('', { tool: 'think', input: [1] }))
    expect(list.observed?.[0]?.content).toBe('Error: the arguments of think must be a JSON object')
  })

  it('answers calls beyond the first with an error each', async () => {
    const world = await open(environmentOf(), { split: 'test', index: 0 })
    const think = { tool: 'think', input: { thought: '' } }
    const { observed, calls } = await step(
      world,
      replyOf('', { ...think, id: 'a' }, { ...think, id: 'b' }),
    )
    expect(observed).toEqual([
      { role: 'tool', tool_call_id: 'a', name: 'think', content: '' },
      {
        role: 'tool',
        tool_call_id: 'b',
        name: 'think',
        content: 'Error: one call per turn; this one was not run.',
      },
    ])
    expect(calls?.map(record => record.problem)).toEqual([undefined, 'extra-call'])
  })

  it('ends without reward where the original would have broken off', async () => {
    const environment = environmentOf({ domain: airline })
    const world = await open(environment, { split: 'test', index: 0 })
    const send = replyOf('', {
      tool: 'send_certificate',
      input: { user_id: 'dov_hale_0002', amount: 1 },
    })
    for (let times = 0; times < 3; times++) await step(world, send)
    expect(await step(world, send)).toMatchObject({ kind: 'end' })
    const { reward, error } = await reportOf(world)
    expect([reward, error]).toEqual([0, expect.stringContaining('validation error')])
  })

  it('hears a call of "respond" as words, whatever its content', async () => {
    const world = await open(environmentOf(), { split: 'test', index: 0 })
    const { observed } = await step(world, replyOf('', { tool: 'respond', input: { content: 5 } }))
    expect(observed).toEqual([{ role: 'user', content: 'Yes' }])
    const empty = await step(world, replyOf('', { tool: 'respond', input: {} }))
    expect(empty.observed?.[0]?.content).toBe("Error: 'content'")
  })
})

describe('other agents', () => {
  it('act in text: what tools answer comes back as a message', async () => {
    const world = await open(environmentOf({ agent: 'react' }), { split: 'test', index: 0 })
    expect(world.tools).toEqual([])
    const thought = 'Thought: hm\nAction: {"name": "think", "arguments": {"thought": "x"}}'
    const { observed } = await step(world, replyOf(thought))
    expect(observed).toEqual([{ role: 'user', content: 'API output: ' }])
    const words = await step(world, replyOf('Action: Hello!'))
    expect(words.observed).toEqual([{ role: 'user', content: 'Yes' }])
    const bad = await step(world, replyOf('Action: {"name": "think"}'))
    expect(bad.observed?.[0]?.content).toMatch(/^API output: Error: an action needs/)
  })

  it('see the same examples for the same seed', async () => {
    const environment = environmentOf({ agent: 'few-shot' })
    const [one, two] = await Promise.all(
      [0, 1].map(() => open(environment, { split: 'test', index: 0 })),
    )
    expect(one?.opening).toEqual(two?.opening)
    expect(one?.opening[0].content).toContain('Example 5:\nuser: story')
  })

  it('can be told to make one call at a time', async () => {
    const world = await open(environmentOf({ toolInstruction: true }), { split: 'test', index: 0 })
    expect(world.opening[0].content).toContain('at most one call per turn')
  })
})
