import { textOf } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Environment, World } from '../../../base/core/environment.ts'
import type { Json, TaskId } from '../../../base/core/ids.ts'
import { makeLanes } from '../../../base/core/lane.ts'
import type { RewardFunction, RewardInput } from '../../../base/core/reward.ts'
import { environmentFactory } from '../factory.ts'
import { openEnvironment } from '../registry.ts'
import { replyOf, type ScriptedCall } from '../reply.ts'
import { evaluateExpression } from './expression.ts'
import { singleTurn } from './single-turn.ts'

const signal = new AbortController().signal
const lanes = makeLanes({ policy: 8, tools: 8, environment: 8, reward: 8 })
const id = 'task' as TaskId

function openTask(environment: Environment, data: unknown): Promise<World> {
  return environment.open({ id, data: environment.readTask(data) }, { seed: 1, signal, lanes })
}

async function call(world: World, ...calls: readonly ScriptedCall[]): Promise<string[]> {
  const { observed } = await world.step(replyOf('', ...calls), { signal, messages: [], turn: 0 })
  return (observed ?? []).map(message => textOf(message.content))
}

function score(environment: Environment, data: unknown, answer: string, report?: Json) {
  const right = environment.reward.right as RewardFunction
  return right({ task: { id, data }, answer, report } as RewardInput, { signal })
}

describe('expressions', () => {
  it.each([
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3', 9],
    ['-2^2', -4],
    ['2^3^2', 512],
    ['2**-1', 0.5],
    ['7 % 4 − 3', 0],
    ['6 ÷ 4 × 2', 3],
    ['--3', 3],
    ['sqrt(16) + max(1, 2, min(9, 3))', 7],
    ['2 * PI', 2 * Math.PI],
    ['1.5e3 + .5', 1500.5],
    ['0 * -1', 0],
  ])('%s is %s', (expression, value) => {
    expect(evaluateExpression(expression)).toBe(value)
  })

  it.each([
    ['', 'The expression ends where a number is missing.'],
    ['1 +', 'The expression ends where a number is missing.'],
    ['(1', 'The expression ends where ")" is missing.'],
    ['1)', 'Unexpected ")" at character 2; expected an operator.'],
    ['1,000', 'Unexpected "," at character 2; expected an operator.'],
    ['2 $ 3', 'Cannot read "$" at character 3.'],
    ['1 / (2 - 2)', 'Division by zero.'],
    ['sqrt(-1)', 'The value is not a real number.'],
    ['9^9^9', 'The value is too large.'],
    ['process.exit()', 'Cannot read "." at character 8.'],
    ['sqrt(1, 2)', 'sqrt takes one value, got 2'],
    ['constructor(1)', 'Unknown name "constructor"'],
    ['('.repeat(1000), 'Nested more than 100 deep.'],
    [`${'1^'.repeat(900)}1`, 'Nested more than 100 deep.'],
    ['1'.repeat(3000), 'at most 2000'],
  ])('%s is refused', (expression, message) => {
    expect(() => evaluateExpression(expression)).toThrow(message)
  })
})

describe('calculator', () => {
  it('calculates, makes tasks from a seed and rewards the right number', async () => {
    const environment = await openEnvironment('calculator')
    const tasks = environment.makeTasks!({ count: 50, seed: 3 })
    expect(environment.makeTasks!({ count: 50, seed: 3 })).toEqual(tasks)
    expect(environment.makeTasks!({ count: 50, seed: 3, split: 'test' })).not.toEqual(tasks)
    expect(new Set(tasks.map(task => task.id)).size).toBe(50)
    const data = z.object({ prompt: z.string(), answer: z.number() }).parse(tasks[0]?.data)
    await using world = await openTask(environment, data)
    const expression = data.prompt.slice('What is '.length, data.prompt.indexOf('?'))
    expect(await call(world, { tool: 'calculate', input: { expression } })).toEqual([
      String(data.answer),
    ])
    expect(await call(world, { tool: 'calculate', input: { expression: '0.1+0.2' } })).toEqual([
      '0.3',
    ])
    expect(await score(environment, data, `It is ${data.answer}.`)).toBe(1)
    expect(await score(environment, data, `It is ${data.answer + 1}.`)).toBe(0)
    expect(await score(environment, data, '')).toBe(0)
  })

  it('shows the policy what was wrong with an expression', async () => {
    await using world = await openTask(await openEnvironment('calculator'), { prompt: 'x' })
    expect(await call(world, { tool: 'calculate', input: { expression: '2 +' } })).toEqual([
      'Error: calculate failed: SyntaxError: The expression ends where a number is missing.',
    ])
  })

  it('refuses a split that it does not have', async () => {
    const environment = await openEnvironment('calculator')
    const make = () => environment.makeTasks!({ count: 1, seed: 1, split: 'dev' })
    expect(make).toThrow('no split "dev". Known: train, test.')
  })
})

describe('key-value', () => {
  it('keeps one store behind its tools and rewards what it holds in the end', async () => {
    const environment = await openEnvironment('key-value')
    const data = { prompt: 'move', store: { a: '1', b: '2' }, want: { c: '1', b: '2' } }
    await using world = await openTask(environment, data)
    expect(await call(world, { tool: 'keys' }, { tool: 'get', input: { key: 'x' } })).toEqual([
      '["a","b"]',
      'Error: get failed: nothing is stored under "x"',
    ])
    await using twin = await world.fork!({ signal })
    await call(world, { tool: 'put', input: { key: 'c', value: '1' } })
    await call(world, { tool: 'remove', input: { key: 'a' } })
    const report = await world.report!()
    expect(report).toEqual({ store: { b: '2', c: '1' } })
    expect(await twin.report!()).toEqual({ store: { a: '1', b: '2' } })
    expect(await score(environment, data, 'done', report)).toBe(1)
    expect(await score(environment, data, 'done', await twin.report!())).toBe(0)
    expect(await score(environment, { ...data, answer: 'yes' }, 'no', report)).toBe(0)
  })

  it('makes tasks that it can read, and whose untouched store earns nothing but answers', async () => {
    const environment = await openEnvironment('key-value')
    for (const { data } of environment.makeTasks!({ count: 20, seed: 1 })) {
      const read = environment.readTask(data)
      await using world = await openTask(environment, read)
      expect(await score(environment, read, '', await world.report!())).toBe(0)
    }
  })
})

describe('single turn', () => {
  it('opens with messages or a prompt, never both or neither', () => {
    const { readTask } = singleTurn()
    expect(readTask({ prompt: 'hi', other: 1 })).toEqual({ prompt: 'hi' })
    const messages = [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'hi' },
    ]
    expect(readTask({ messages })).toEqual({ messages })
    expect(() => readTask({})).toThrow(/give either `prompt`/)
    expect(() => readTask({ prompt: 'hi', messages })).toThrow(/give either `prompt`/)
    expect(() => readTask({ messages: [{ role: 'narrator', content: '' }] })).toThrow(/messages.0/)
  })

  it('ends with the first answer, rewarded where it is the right one', async () => {
    const environment = await openEnvironment('single-turn:match=number')
    await using world = await openTask(environment, { prompt: '1 + 1?' })
    expect(await world.step(replyOf('2'), { signal, messages: [], turn: 0 })).toEqual({
      kind: 'end',
    })
    expect(await score(environment, { prompt: '', answer: 2 }, 'so 2.0')).toBe(1)
    expect(await score(singleTurn(), { prompt: '', answer: '2' }, 'so 2.0')).toBe(0)
  })
})

describe('names', () => {
  it.each([
    ['calculater', /No environment called "calculater". Known: .*calculator.*key-value/],
    ['calculator:fast', /"variant". It has no options/],
    ['single-turn:match=fuzzy', /match: .*Its options: match/],
    ['tool-loop', /mcp: .*Its options: match, mcp/],
    ['__proto__', /No environment called/],
  ])('%s is refused', async (name, message) => {
    await expect(openEnvironment(name)).rejects.toThrow(message)
  })

  it('can be added, with options that are read from text', async () => {
    const shelf = environmentFactory({
      about: 'a shelf',
      options: z.strictObject({ variant: z.enum(['tall', 'low']), width: z.coerce.number() }),
      open: ({ variant, width }) => ({ ...singleTurn(), name: `${variant} ${width + 1}` }),
    })
    expect((await openEnvironment('shelf:tall,width=2', { shelf })).name).toBe('tall 3')
  })
})
