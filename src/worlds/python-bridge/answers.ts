import type { Message, ToolCall } from '@espalier/text'
import { z } from 'zod'
import { brokenPackage } from './bridge-process.ts'

const about = z.object({
  protocol: z.literal(1),
  name: z.string().min(1),
  splits: z.record(z.string(), z.int().min(0)),
  made: z.record(z.string(), z.string()),
})

/** A hosted package's description: how many tasks each split has, if it lists tasks. */
export type About = z.output<typeof about>

const content = z.union([
  z.string(),
  z.array(z.object({ type: z.literal('text'), text: z.string() }).loose()),
])
const toolCalls = z.array(z.custom<ToolCall>(value => typeof value === 'object' && value !== null))
const messages = z.array(
  z.object({
    role: z.enum(['system', 'user', 'assistant', 'tool']),
    content: content.nullish(),
    tool_call_id: z.string().optional(),
    tool_calls: toolCalls.optional(),
  }),
)
const begun = z.object({
  opening: messages.min(1),
  tools: z
    .array(
      z.object({
        name: z.string().min(1),
        description: z.string().default(''),
        parameters: z.record(z.string(), z.unknown()).default({}),
      }),
    )
    .refine(tools => new Set(tools.map(({ name }) => name)).size === tools.length, {
      error: 'two tools have one name',
    }),
})
const stepped = z.object({ observed: messages, reward: z.number().nullish(), done: z.boolean() })
const finished = z.object({ reward: z.number().nullish() })

/** What a package said when it was loaded. */
export function readAbout(answer: unknown): About {
  return read(about, answer, 'what a bridge says first')
}

/** How a world began. */
export function readBegun(answer: unknown) {
  const { opening, tools } = read(begun, answer, 'a world’s beginning')
  return { opening: opening.map(toMessage), tools }
}

/** The result of an action. */
export function readStepped(answer: unknown) {
  const { observed, reward, done } = read(stepped, answer, 'what a step comes to')
  return { observed: observed.map(toMessage), reward: reward ?? undefined, done }
}

/** What an attempt that was cut off is worth. */
export function readFinished(answer: unknown): number | undefined {
  return read(finished, answer, 'a score').reward ?? undefined
}

type Given = z.output<typeof messages>[number]

function toMessage({ role, content: said, tool_call_id: id, tool_calls: calls }: Given): Message {
  const text = typeof said === 'string' ? said : (said ?? []).map(part => part.text).join('')
  if (role === 'tool') return { role, content: text, tool_call_id: id ?? '' }
  if (role !== 'assistant') return { role, content: text }
  return { role, content: text, ...(calls && calls.length > 0 && { tool_calls: calls }) }
}

function read<Output>(schema: z.ZodType<Output>, answer: unknown, wanted: string): Output {
  const result = schema.safeParse(answer)
  if (result.success) return result.data
  const problem = z.prettifyError(result.error).replaceAll('\n', ' ').slice(0, 300)
  throw brokenPackage(`the Python world’s answer is not ${wanted}: ${problem}`)
}
