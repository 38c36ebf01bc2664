import { z } from 'zod'
import { shop } from '../../../test/fixtures/shop.ts'
import type { Environment } from '../../base/core/environment.ts'
import type { RewardFunction } from '../../base/core/reward.ts'
import { environment } from './environment.ts'
import { tool } from './tools/tool.ts'

export const typed: Environment<{ stock: number; wanted: number }> = shop
export const untyped: Environment = shop
// @ts-expect-error: its tasks have other data
export const other: Environment<{ stock: string }> = shop

interface Ledger {
  readonly sold: number
}

environment({
  name: 'kinds',
  task: z.object({ stock: z.int() }),
  // A report may be of an interface, and opening may be asynchronous.
  async open({ data, id, seed, signal }) {
    const ledger: Ledger = { sold: data.stock + seed + id.length + Number(signal.aborted) }
    // @ts-expect-error: not in the schema
    data.wanted
    return { opening: [{ role: 'user', content: 'hello' }], report: () => ledger }
  },
  reward: {
    sold: ({ report }) => report.sold,
    // @ts-expect-error: not in the report
    left: ({ report }) => report.left,
  },
})

environment({
  name: 'without report',
  task: z.object({ stock: z.int() }),
  open: ({ data }) => ({ opening: [{ role: 'user', content: `${data.stock}` }] }),
  // @ts-expect-error: this world gives no report
  reward: { sold: ({ report }) => report.sold },
})

environment({
  name: 'wrong role',
  task: z.object({}),
  // @ts-expect-error: nobody has this role
  open: () => ({ opening: [{ role: 'narrator', content: 'hello' }] }),
})

// @ts-expect-error: an option that does not exist
environment({ name: 'x', task: z.object({}), open: () => ({ opening: [] }), callz: 'one' })

declare const anyTask: RewardFunction
declare const otherTask: RewardFunction<{ readonly price: number }>

environment({
  name: 'rewards made elsewhere',
  task: z.object({ stock: z.int() }),
  open: ({ data }) => ({ opening: [{ role: 'user', content: data.stock.toFixed() }] }),
  // @ts-expect-error: scores other tasks
  reward: { anyTask, otherTask: { weight: 1, score: otherTask } },
})

tool({
  inputSchema: z.object({ pears: z.int(), note: z.string().default('') }),
  execute({ pears, note }, { toolCallId, messages, abortSignal }) {
    // @ts-expect-error: not in the schema
    const other = (input: { pears: number }) => input.apples
    abortSignal.throwIfAborted()
    return { other, pears: pears + 1, note: note.trim(), toolCallId, count: messages.length }
  },
})

/** The AI SDK's shape, as far as its types matter here. */
interface AiTool<Input, Output> {
  description?: string | undefined
  title?: string
  inputSchema: { jsonSchema: object; validate?: (value: unknown) => unknown; _type: Input }
  execute?: (
    input: Input,
    options: {
      toolCallId: string
      messages: { role: 'ai-sdk'; parts: string[] }[]
      abortSignal?: AbortSignal
    },
  ) => AsyncIterable<Output> | PromiseLike<Output> | Output
  toModelOutput?: (output: Output) => unknown
}

environment({
  name: 'tasks with plain ids',
  task: z.object({ pears: z.int() }),
  open: () => ({ opening: [{ role: 'user', content: 'sell' }] }),
  makeTasks: ({ count }) =>
    Array.from({ length: count }, (_, index) => ({ id: `order-${index}`, data: { pears: index } })),
})

declare const weather: AiTool<{ city: string }, { celsius: number }>

environment({
  name: 'AI SDK tools',
  task: z.object({}),
  open: () => ({ opening: [{ role: 'user', content: 'how warm?' }], tools: { weather } }),
})
