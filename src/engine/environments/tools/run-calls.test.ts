import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { Failure } from '../../../base/core/failure.ts'
import { makeLanes } from '../../../base/core/lane.ts'
import { replyOf, type ScriptedCall } from '../reply.ts'
import type { CallSurroundings } from './ready-tool.ts'
import { readTools } from './run-calls.ts'
import { type Toolset, tool } from './tool.ts'

const never = (): Promise<never> => new Promise(() => {})

function surroundings(more: Partial<CallSurroundings> = {}): CallSurroundings {
  const lanes = makeLanes({ policy: 8, tools: 8, environment: 8, reward: 8 })
  return { scope: 'test', lanes, ...more }
}

async function run(tools: Toolset, calls: readonly ScriptedCall[], around = surroundings()) {
  const { runCalls } = await readTools(tools, around)
  const signal = AbortSignal.timeout(50_000)
  return await runCalls(replyOf('', ...calls).calls, { signal, messages: [], turn: 3 })
}

const add = tool({
  description: 'adds',
  inputSchema: z.object({
    a: z.int(),
    b: z.int().default(1),
    unit: z.enum(['kg', 'g']).optional(),
  }),
  execute: ({ a, b }) => ({ sum: a + b }),
})

it('a result that is a circle fails at the tool, with a reason in one line', async () => {
  const circle: Record<string, unknown> = {}
  circle.self = circle
  const circular = tool({ inputSchema: z.object({}), execute: () => circle })
  const failure = await run({ circular }, [{ tool: 'circular' }]).catch(error => error)
  expect(failure).toMatchObject({ boundary: 'tool' })
  expect(failure.message).toMatch(/^circular gave a result that is not JSON: .*closes the circle$/)
})

describe('what a policy does wrong is an observation it can learn from', () => {
  it.each<[string, ScriptedCall, string, string]>([
    [
      'unknown tool',
      { tool: 'ad' },
      'unknown-tool',
      'Error: there is no tool called "ad". Tools: add.',
    ],
    [
      'a name on the prototype',
      { tool: 'constructor' },
      'unknown-tool',
      'Error: there is no tool called "constructor". Tools: add.',
    ],
    [
      'malformed call',
      { malformed: '{"name"', problem: 'the JSON ends early' },
      'malformed-call',
      'Error: this call could not be read: the JSON ends early. Tools: add.',
    ],
    [
      'missing argument',
      { tool: 'add', input: { b: 2 } },
      'invalid-arguments',
      'Error: invalid arguments for add: a: Invalid input: expected number, received undefined. Expected add(a: integer, b?: integer, unit?: "kg" | "g").',
    ],
    [
      'not an object',
      { tool: 'add', input: [1] },
      'invalid-arguments',
      'Error: invalid arguments for add: they must be a JSON object. Expected add(a: integer, b?: integer, unit?: "kg" | "g").',
    ],
  ])('%s', async (_, call, problem, content) => {
    const { observed, records } = await run({ add }, [call])
    expect(records[0]).toMatchObject({ turn: 3, problem, output: content })
    expect(observed).toMatchObject([{ role: 'tool', tool_call_id: 'call_0', content }])
  })

  it('arguments that are not JSON', async () => {
    const { runCalls } = await readTools({ add }, surroundings())
    const attempt = { kind: 'parsed', id: 'x', name: 'add', arguments: '{"a":' } as const
    const signal = new AbortController().signal
    const { records } = await runCalls([attempt], { signal, messages: [], turn: 0 })
    expect(records[0]).toMatchObject({ problem: 'malformed-call', input: '{"a":' })
    expect(records[0]?.output).toContain('not valid JSON. Expected add(a: integer')
  })

  it('a thrown error', async () => {
    const inputSchema = z.object({})
    const fail = tool({
      inputSchema,
      execute: () => {
        throw new RangeError('no such shelf')
      },
    })
    const { records } = await run({ fail }, [{ tool: 'fail' }])
    const output = 'Error: fail failed: RangeError: no such shelf'
    expect(records[0]).toMatchObject({ problem: 'thrown', output })
  })

  it('a time-out, of a tool that does not listen too, and tells the tool', async () => {
    const stopped = vi.fn()
    const hang = tool({
      inputSchema: z.object({}),
      limits: { seconds: 0.02 },
      execute: (_, { abortSignal }) => {
        abortSignal.addEventListener('abort', stopped)
        return never()
      },
    })
    const { records } = await run({ hang }, [{ tool: 'hang' }])
    const output = 'Error: hang took longer than 0.02 seconds and was stopped.'
    expect(records[0]).toMatchObject({ problem: 'timeout', output })
    expect(stopped).toHaveBeenCalledOnce()
  })

  it('over-long output, cut between characters and counted', async () => {
    const long = tool({
      inputSchema: z.object({}),
      limits: { characters: 100 },
      execute: () => '🍐'.repeat(1000),
    })
    const [record] = (await run({ long }, [{ tool: 'long' }])).records
    expect(record?.output.length).toBeLessThanOrEqual(100)
    expect(record?.output).toMatch(
      /^🍐+\n\[Error: output too long, \d+ more characters not shown\]$/u,
    )
    expect(record?.output).toContain(`${record?.cut} more`)
    expect(record?.problem).toBeUndefined()
  })

  it('calls after the first where one is allowed', async () => {
    const around = surroundings({ calls: 'one' })
    const calls = [1, 2, 3].map(a => ({ tool: 'add', input: { a } }))
    const { records } = await run({ add }, calls, around)
    expect(records.map(record => record.problem)).toEqual([undefined, 'extra-call', 'extra-call'])
    expect(records[1]?.output).toMatch(/one call per turn/)
  })
})

describe('calls of one turn', () => {
  it('run in parallel and answer in call order, with their ids', async () => {
    const ended: string[] = []
    let end = (): void => {}
    const fastEnded = new Promise<void>(resolve => {
      end = resolve
    })
    const wait = tool({
      inputSchema: z.object({ how: z.enum(['slow', 'fast']) }),
      // The first call ends after the second, so both have to run at one time.
      async execute({ how }) {
        if (how === 'slow') await fastEnded
        ended.push(how)
        end()
        return how
      },
    })
    const { observed } = await run({ wait }, [
      { tool: 'wait', input: { how: 'slow' }, id: 'a' },
      { tool: 'wait', input: { how: 'fast' }, id: 'b' },
    ])
    expect(ended).toEqual(['fast', 'slow'])
    expect(observed).toEqual([
      { role: 'tool', tool_call_id: 'a', name: 'wait', content: 'slow' },
      { role: 'tool', tool_call_id: 'b', name: 'wait', content: 'fast' },
    ])
  })

  it('turn results that are not strings into JSON, and apply the schema to the input', async () => {
    const nothing = tool({ inputSchema: z.object({}), execute: () => undefined })
    const calls = [{ tool: 'add', input: { a: 2 } }, { tool: 'nothing' }]
    const { records } = await run({ add, nothing }, calls)
    expect(records.map(record => record.output)).toEqual(['{"sum":3}', 'null'])
    expect(records[0]?.input).toEqual({ a: 2, b: 1 })
  })

  it('go through the tools lane, and through a bound of their own over all worlds', async () => {
    let running = 0
    let most = 0
    const makeTools = (): Toolset => ({
      narrow: tool({
        inputSchema: z.object({}),
        limits: { concurrency: 2 },
        async execute() {
          most = Math.max(most, ++running)
          // Everything that may start by now has its turn before this ends.
          await nextTurn()
          running--
        },
      }),
    })
    const lanes = makeLanes({ policy: 1, tools: 3, environment: 1, reward: 1 })
    const around = surroundings({ lanes })
    const calls = Array.from({ length: 4 }, () => ({ tool: 'narrow' }))
    await Promise.all([1, 2, 3].map(() => run(makeTools(), calls, around)))
    expect(most).toBe(2)
    expect([lanes.tools.running, lanes.tools.waiting]).toEqual([0, 0])
  })

  it('do not keep other tools out of the lane while they wait for their own bound', async () => {
    let open = () => {}
    const gate = new Promise<void>(resolve => {
      open = resolve
    })
    const narrow = tool({
      inputSchema: z.object({}),
      limits: { concurrency: 1 },
      execute: () => gate,
    })
    const lanes = makeLanes({ policy: 1, tools: 2, environment: 1, reward: 1 })
    const around = surroundings({ lanes })
    const blocked = run(
      { narrow },
      [{ tool: 'narrow' }, { tool: 'narrow' }, { tool: 'narrow' }],
      around,
    )
    const { records } = await run({ add }, [{ tool: 'add', input: { a: 1 } }], around)
    expect(records[0]?.output).toBe('{"sum":2}')
    open()
    await blocked
  })

  it('stop promptly with the reason of the signal', async () => {
    const hang = tool({ inputSchema: z.object({}), execute: never })
    const { runCalls } = await readTools({ hang }, surroundings())
    const stop = new AbortController()
    const reason = new Error('the run was stopped')
    const attempts = replyOf('', { tool: 'hang' }, { tool: 'hang' }).calls
    const running = runCalls(attempts, { signal: stop.signal, messages: [], turn: 0 })
    setImmediate(() => stop.abort(reason))
    await expect(running).rejects.toBe(reason)
  })

  it('stop promptly too where the tool itself stops the run as it begins', async () => {
    const stop = new AbortController()
    const reason = new Error('the run was stopped')
    const last = tool({
      inputSchema: z.object({}),
      limits: { seconds: 600 },
      execute: () => {
        stop.abort(reason)
        return never()
      },
    })
    const { runCalls } = await readTools({ last }, surroundings())
    const attempts = replyOf('', { tool: 'last' }).calls
    const running = runCalls(attempts, { signal: stop.signal, messages: [], turn: 0 })
    await expect(running).rejects.toBe(reason)
  })

  it('[O1] fail the trajectory where a tool says that its world broke, or gives no JSON', async () => {
    const broken = tool({
      inputSchema: z.object({}),
      execute: () => {
        throw new Failure('environment', { cause: new Error('the database is gone') })
      },
    })
    await expect(run({ broken }, [{ tool: 'broken' }])).rejects.toMatchObject({
      boundary: 'environment',
      message: 'the database is gone',
    })
    const big = tool({ inputSchema: z.object({}), execute: () => 10n })
    await expect(run({ big }, [{ tool: 'big' }])).rejects.toMatchObject({ boundary: 'tool' })
  })

  it('take the seconds of the clock they are given', async () => {
    let now = 0
    const { records } = await run(
      { add },
      [{ tool: 'add', input: { a: 1 } }],
      surroundings({ clock: () => now++ }),
    )
    expect(records[0]?.seconds).toBe(1)
  })

  it('feed back what outside tools said when replayed, and run the others again', async () => {
    const outside = vi.fn(() => 'new weather')
    const inside = vi.fn(() => 'same')
    const inputSchema = z.object({})
    const tools = {
      weather: tool({ inputSchema, execute: outside, effects: 'outside' as const }),
      count: tool({ inputSchema, execute: inside }),
    }
    const { runCalls } = await readTools(tools, surroundings())
    const { calls } = replyOf('', { tool: 'count' }, { tool: 'weather' })
    const call = { signal: new AbortController().signal, messages: [], turn: 0 }
    const recorded = { ...(await runCalls(calls, call)) }
    outside.mockReturnValue('other weather')
    const replay = { kind: 'end', calls: recorded.records } as const
    const again = await runCalls(calls, { ...call, replay })
    expect(again.observed).toEqual(recorded.observed)
    expect([outside.mock.calls.length, inside.mock.calls.length]).toEqual([1, 2])
  })
})

describe('tools that cannot be offered', () => {
  it.each<[string, Toolset, RegExp]>([
    ['no execute', { ask: { inputSchema: z.object({}) } }, /Tool "ask" has no execute/],
    [
      'not an object',
      { ask: tool({ inputSchema: z.string(), execute: () => 1 }) },
      /Tool "ask".*describes a string/,
    ],
    [
      'a limit of 0',
      { ask: tool({ inputSchema: z.object({}), execute: () => 1, limits: { concurrency: 0 } }) },
      /limit of 0 concurrency/,
    ],
    ['no schema', { ask: { inputSchema: undefined, execute: () => 1 } }, /Tool "ask".*undefined/],
  ])('%s', async (_, tools, message) => {
    await expect(readTools(tools, surroundings())).rejects.toThrow(message)
  })
})
