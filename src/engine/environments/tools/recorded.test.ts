import { expect, it } from 'vitest'
import { z } from 'zod'
import { makeLanes } from '../../../base/core/lane.ts'
import { replyOf } from '../reply.ts'
import { readTools } from './run-calls.ts'
import { type OfferedTool, tool } from './tool.ts'

const lanes = makeLanes({ policy: 8, tools: 8, environment: 8, reward: 8 })

async function callOnce(called: OfferedTool, input: unknown) {
  const { runCalls } = await readTools({ called }, { scope: 'test', lanes })
  const { signal } = new AbortController()
  const { calls } = replyOf('', { tool: 'called', input })
  const { records } = await runCalls(calls, { signal, messages: [], turn: 0 })
  return records[0]!
}

it('a record keeps what a tool was called with, whatever the tool does with it', async () => {
  const inputSchema = z.object({ path: z.array(z.any()) })
  const change = tool({
    inputSchema,
    execute(input) {
      input.path[0].self = input
      input.path.push('more')
      return 'changed'
    },
  })
  const input = { path: [{ name: 'a', none: null }] }
  expect(await callOnce(change, input)).toMatchObject({ input, output: 'changed' })
})

it('arguments that nest too deep to be written again are the policy’s mistake', async () => {
  const any = tool({ inputSchema: z.object({ a: z.any() }), execute: () => 'ran' })
  let nested: unknown = 1
  for (let depth = 0; depth < 2000; depth++) nested = [nested]
  const record = await callOnce(any, { a: nested })
  expect(record).toMatchObject({ problem: 'malformed-call', input: expect.any(String) })
  expect(record.output).toBe('Error: the arguments of called nest too deep.')
})

it('a schema that makes a circle fails at the tool', async () => {
  const inputSchema = z.object({ a: z.int() }).transform(made => Object.assign(made, { made }))
  const circle = tool({ inputSchema, execute: () => 'ran' })
  await expect(callOnce(circle, { a: 1 })).rejects.toMatchObject({
    boundary: 'tool',
    message: expect.stringContaining('called has a schema whose result cannot be kept'),
  })
})

const parameters = {
  type: 'object',
  properties: { count: { type: 'string' } },
  required: ['count'],
}
const own = {
  '~standard': {
    version: 1,
    vendor: 'own',
    validate: async (input: { readonly count: string }) => ({ value: BigInt(input.count) }),
    jsonSchema: { input: () => parameters },
  },
}

it.each<[string, object]>([
  ['throws', z.object({ count: z.string().transform(text => BigInt(text)) })],
  ['rejects', own],
])('O1: arguments at which a schema %s are invalid', async (_how, inputSchema) => {
  const record = await callOnce({ inputSchema, execute: () => 'ran' }, { count: 'three' })
  expect(record).toMatchObject({ problem: 'invalid-arguments', input: { count: 'three' } })
  expect(record.output).toContain(
    'Cannot convert three to a BigInt. Expected called(count: string)',
  )
})
