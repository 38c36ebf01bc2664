import { z } from 'zod'
import type { Full } from './line.ts'
import { brokenWorld } from './session.ts'

/** The result of a reset or a step. */
export interface Observed {
  readonly observation: Readonly<Record<string, unknown>>
  /** Undefined if the server gave none. */
  readonly reward: number | undefined
  readonly isDone: boolean
}

const fields = z.record(z.string(), z.unknown())
const observed = z.object({
  type: z.literal('observation'),
  data: z.object({
    observation: fields,
    reward: z.union([z.number(), z.boolean()]).nullish(),
    done: z.boolean(),
  }),
})
const refused = z.object({
  type: z.literal('error'),
  data: z.object({
    message: z.string().default(''),
    code: z.string().default(''),
    errors: z.unknown().optional(),
    active_sessions: z.number().optional(),
    max_sessions: z.number().optional(),
  }),
})

/** What a server says is wrong; its socket stays open unless it closes it. */
export interface Refusal {
  readonly code: string
  readonly message: string
  readonly full?: Full
}

/** The answer as a refusal; undefined if it is not one. */
export function refusalOf(answer: unknown): Refusal | undefined {
  const { success, data } = refused.safeParse(answer)
  if (!success) return undefined
  const { code, message, errors, active_sessions: active, max_sessions: most } = data.data
  const details = errors === undefined ? '' : `: ${JSON.stringify(errors).slice(0, 500)}`
  const full = code === 'CAPACITY_REACHED' ? { full: { active, most } as Full } : {}
  return { code, message: `${message}${details}`.slice(0, 1000), ...full }
}

/** An answer to a reset or a step. */
export function observedOf(answer: unknown): Observed {
  const { observation, reward, done } = read(observed, answer, 'an observation').data
  const given = typeof reward === 'boolean' ? Number(reward) : (reward ?? undefined)
  return { observation, reward: given, isDone: done }
}

function read<Output>(schema: z.ZodType<Output>, answer: unknown, wanted: string): Output {
  const result = schema.safeParse(answer)
  if (result.success) return result.data
  const problem = z.prettifyError(result.error).replaceAll('\n', ' ').slice(0, 300)
  const got = (JSON.stringify(answer) ?? String(answer)).slice(0, 200)
  throw brokenWorld(`the server’s answer is not ${wanted}: ${problem} in ${got}`)
}

const tool = z.object({
  name: z.string().min(1).max(200),
  description: z.string().nullish(),
  input_schema: fields.optional(),
  inputSchema: fields.optional(),
})
const tools = z.object({ tools: z.array(tool).max(1000) })

/** A tool of a tool world. */
export interface ListedTool {
  readonly name: string
  readonly description: string | undefined
  readonly schema: Readonly<Record<string, unknown>>
}

/** The tools that a world lists. */
export function toolsOf(listing: unknown): readonly ListedTool[] {
  return read(tools, listing, 'a list of tools').tools.map(each => ({
    name: each.name,
    description: each.description ?? undefined,
    schema: each.input_schema ?? each.inputSchema ?? { type: 'object' },
  }))
}

const called = z.object({
  result: z.unknown().optional(),
  error: z.object({ error_type: z.string(), message: z.string() }).nullish(),
})
const callResult = z.object({
  content: z.array(fields).optional(),
  is_error: z.boolean().nullish(),
  isError: z.boolean().nullish(),
})

/** A tool's result as the policy is shown it; throws the tool's error, which the policy then reads. */
export function calledOf(observation: unknown): unknown {
  const { result, error } = read(called, observation, 'the observation of a call')
  if (error?.error_type === 'transport_error') {
    throw brokenWorld(`the world’s tools do not answer: ${error.message}`)
  }
  if (error) throw new Error(error.message.slice(0, 2000))
  return mcpResult(result)
}

/** The result of an MCP call as text if it is one. */
export function mcpResult(result: unknown): unknown {
  const { success, data } = callResult.safeParse(result)
  if (!success || !data.content) return result
  const text = data.content.map(part => part.text ?? JSON.stringify(part)).join('\n')
  if (data.is_error || data.isError) throw new Error(text)
  return text
}
