import type { Message } from '@espalier/text'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Environment, StepCall, World } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import { recordWorld, replayWorld } from '../../engine/environments/fork.ts'
import { replyOf } from '../../engine/environments/reply.ts'
import { Tau2Domain } from './domain.ts'
import { type Tau2EnvironmentOptions, type Tau2TaskData, tau2Environment } from './environment.ts'
import type { Tau2Report } from './report.ts'
import { splitTasks } from './splits.ts'
import { lineUser, modelUser } from './user.ts'
import { Tau2World } from './world.ts'

const root = 'test/fixtures/tau2-checkout'
let retail: Tau2Domain
let telecom: Tau2Domain

beforeAll(() => {
  retail = new Tau2Domain({ root, domain: 'retail' })
  telecom = new Tau2Domain({ root, domain: 'telecom' })
})

const signal = new AbortController().signal
const lanes = makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
const call = { signal, seed: 7, lanes }
const stepCall: StepCall = { signal, messages: [], turn: 0 }
const polite = lineUser(['Cancel #1 please.', '###STOP###'])

const open = (environment: Environment<Tau2TaskData>, split: string, id: string): Promise<World> =>
  environment.open({ id: 'task' as TaskId, data: { split, id } }, call)

const shop = (options: Partial<Tau2EnvironmentOptions> = {}): Environment<Tau2TaskData> =>
  tau2Environment({ domain: retail, user: polite, ...options })

const reportOf = async (world: World): Promise<Tau2Report> => (await world.report?.()) as Tau2Report

const cancel = replyOf('', { tool: 'cancel_order', input: { order_id: '#1', reason: 'too late' } })

describe('tau2-bench as an environment', () => {
  it('opens with the policy, the greeting and the first words of the user', async () => {
    const world = await open(shop(), 'test', 'cancel')
    expect(world.opening.map(({ role }) => role)).toEqual(['system', 'assistant', 'user'])
    expect(world.opening[0].content).toContain('<policy>\nCancel pending orders')
    expect(world.tools.map(tool => tool.function.name)).toEqual([
      'calculate',
      'cancel_order',
      'get_order',
      'pay',
    ])
    expect(world.tools[1]?.function.description).toBe('Cancel an order and\n\ngive the money back.')
  })

  it('rewards the right end, and not one of its halves', async () => {
    const world = await open(shop(), 'test', 'cancel')
    const answered = await world.step(cancel, stepCall)
    expect(answered.observed?.[0]?.content).toContain('"status": "cancelled"')
    const ended = await world.step(replyOf('Your balance is 15.0 now.'), stepCall)
    expect(ended.kind).toBe('end')
    const { reward, reward_info } = await reportOf(world)
    expect(reward).toBe(1)
    expect(reward_info).toMatchObject({
      reward_breakdown: { DB: 1, COMMUNICATE: 1 },
      db_check: { db_match: true },
    })
    const silent = await open(shop(), 'test', 'cancel')
    await silent.step(cancel, stepCall)
    await silent.step(replyOf('Done.'), stepCall)
    expect((await reportOf(silent)).reward).toBe(0)
  })

  it('answers mistakes with the words of the original and counts them', async () => {
    const world = await open(shop({ limits: { maxErrors: 2 } }), 'test', 'cancel')
    const first = await world.step(
      replyOf('', { tool: 'cancel_order', input: { order_id: '#9' } }),
      stepCall,
    )
    expect(first.observed?.[0]?.content).toBe(
      "Error: RetailTools.cancel_order() missing 1 required positional argument: 'reason'",
    )
    expect(first.calls?.[0]?.problem).toBe('invalid-arguments')
    const second = await world.step(
      replyOf('', { tool: 'pay', input: { order_id: '#1', amount: 'x' } }),
      stepCall,
    )
    expect(second.observed?.[0]?.content).toContain(
      '1 validation error for Payment\namount\n  Input should be a valid number',
    )
    expect(second.kind).toBe('end')
    expect(await reportOf(world)).toMatchObject({
      reward: 0,
      termination_reason: 'too_many_errors',
    })
  })

  it('[R3] forks worlds that know nothing of each other, and equal their replay', async () => {
    const world = recordWorld(await open(shop(), 'test', 'cancel'))
    await world.step(cancel, stepCall)
    const fork = (await world.fork?.(call)) as World
    const again = await replayWorld(
      shop(),
      { id: 'task' as TaskId, data: { split: 'test', id: 'cancel' } },
      { ...call, record: world.record() },
    )
    for (const one of [fork, again]) {
      await one.step(replyOf('It is 15 now.'), stepCall)
      expect((await reportOf(one)).reward).toBe(1)
    }
    await world.step(replyOf('', { tool: 'pay', input: { order_id: '#2', amount: 1 } }), stepCall)
    await world.step(replyOf('It is 15 now.'), stepCall)
    expect((await reportOf(world)).reward).toBe(0)
  })

  it('gives the reward of an agent that does nothing but say what must be said', async () => {
    const world = await open(shop(), 'train', 'nothing')
    await world.step(replyOf('It was delivered.'), stepCall)
    expect((await reportOf(world)).reward).toBe(1)
  })

  it('asks a judge where a task has assertions in words, and refuses to go without one', async () => {
    await expect(open(shop(), 'train', 'judged')).rejects.toThrow('judge=URI')
    const asked: string[] = []
    const judge = async ({ user }: { readonly user: string }): Promise<string> => {
      asked.push(user)
      return JSON.stringify({
        results: [{ expectedOutcome: 'x', reasoning: 'rude', metExpectation: false }],
      })
    }
    const world = await open(shop({ judge }), 'train', 'judged')
    await world.step(replyOf('No.'), stepCall)
    expect((await reportOf(world)).reward).toBe(0)
    expect(asked[0]).toContain("['The agent is polite.']")
    expect(asked[0]).toContain('assistant: No.')
  })

  it('keeps tasks for training apart from those for tests', () => {
    const splits = splitTasks(retail)
    const ids = (name: string): readonly string[] => (splits.get(name) ?? []).map(({ id }) => id)
    expect([...splits.keys()]).toEqual(['test', 'train', 'base'])
    expect(ids('train').filter(id => ids('test').includes(id))).toEqual([])
    expect(() => shop().readTask({ split: 'test', id: 'nothing' })).toThrow(
      'no task "nothing" in its split test',
    )
  })
})

describe('users with tools of their own', () => {
  const said: (readonly Message[])[] = []
  const speaker: Speaker = {
    name: 'phone',
    say: async (messages, { tools = [] }) => {
      said.push(messages)
      const spoken = messages.filter(({ role }) => role === 'assistant').length
      const toggle = {
        id: `t${spoken}`,
        type: 'function',
        function: { name: tools[1]?.function.name ?? '', arguments: '{}' },
      } as const
      const lines = ['No service!', undefined, '###STOP###'] as const
      const content = lines[spoken] ?? null
      const message =
        content === null
          ? { role: 'assistant' as const, content, tool_calls: [toggle] }
          : { role: 'assistant' as const, content }
      return { message, finish: 'stop', usage: { prompt: 10, sampled: 2 } }
    },
  }

  it('solve a task together with the agent, which never sees what they do', async () => {
    const user = modelUser(speaker, { temperature: 0, retries: 0 })
    const environment = tau2Environment({ domain: telecom, user, price: { prompt: 1, sampled: 1 } })
    const world = recordWorld(await open(environment, 'test', 'suspended'))
    const resumed = await world.step(
      replyOf('', { tool: 'resume_line', input: { line_id: 'L1' } }),
      stepCall,
    )
    expect(resumed.observed?.[0]?.content).toMatch(/^Resumed L1, receipt [0-9a-f]{8}$/)
    const ended = await world.step(replyOf('Please leave airplane mode.'), stepCall)
    expect(ended.kind).toBe('end')
    expect(ended.observed?.map(({ role }) => role)).toEqual(['user'])
    const report = await reportOf(world)
    expect(report).toMatchObject({
      reward: 1,
      termination_reason: 'user_stop',
      user: { calls: 3, prompt: 30, cost: 0.000036 },
    })
    expect(said[2]?.at(-1)).toMatchObject({ role: 'tool', content: 'Airplane mode is off.' })
    const before = said.length
    const again = await replayWorld(
      environment,
      { id: 'task' as TaskId, data: { split: 'test', id: 'suspended' } },
      { ...call, record: world.record() },
    )
    expect(await reportOf(again)).toEqual(report)
    expect(said).toHaveLength(before)
  })

  it('change what their whole class shares in their own world alone', () => {
    const ask = (world: Tau2World, func_name: string): unknown =>
      world.runFunction({ env_type: 'user', func_name, arguments: new Map() })
    const [one, other] = [new Tau2World(telecom), new Tau2World(telecom)]
    ask(one, 'lend')
    expect([ask(one, 'assert_spare'), ask(other, 'assert_spare')]).toEqual([false, true])
    expect(ask(one.fork(), 'assert_spare')).toBe(false)
  })

  it('are nobody where the agent is alone', async () => {
    const environment = tau2Environment({ domain: telecom, user: polite, agent: 'solo' })
    const world = await open(environment, 'test', 'suspended')
    expect(world.opening).toHaveLength(1)
    await world.step(replyOf('', { tool: 'resume_line', input: { line_id: 'L1' } }), stepCall)
    await world.step(replyOf('', { tool: 'toggle_airplane_mode', input: {} }), stepCall)
    const ended = await world.step(replyOf('', { tool: 'done', input: {} }), stepCall)
    expect(ended.kind).toBe('end')
    expect(await reportOf(world)).toMatchObject({ reward: 1, termination_reason: 'agent_stop' })
  })
})
