import { z } from 'zod'
import { describeCause } from '../../base/core/failure.ts'
import type { ToolProblem } from '../../base/core/tool.ts'
import type { FullError, HostSession } from './host.ts'
import { type Called, type HostedTool, type HostedWorld, textOfMessages } from './hosted-world.ts'
import { answerRpc } from './mcp.ts'
import { NotServedError } from './task-list.ts'

/** What a reset may ask for; other fields are ignored, as OpenEnv's own server does. */
export const wantedTask = z.object({
  seed: z.int().min(0).nullish().transform(given),
  episode_id: z.string().max(255).nullish().transform(given),
  split: z.string().nullish().transform(given),
  index: z.int().min(0).nullish().transform(given),
  task_id: z.string().nullish().transform(given),
  task: z.unknown().optional(),
})

function given<T>(value: T | null | undefined): T | undefined {
  return value ?? undefined
}

const fields = z.record(z.string(), z.unknown())
const metadata = fields.optional()
const message = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('reset'), data: wantedTask.default(wantedTask.parse({})) }),
  z.strictObject({
    type: z.literal('step'),
    data: z.union([
      z.strictObject({ type: z.literal('list_tools'), metadata }),
      z.strictObject({
        type: z.literal('call_tool').default('call_tool'),
        tool_name: z.string(),
        arguments: fields.default({}),
        metadata,
      }),
    ]),
  }),
  z.strictObject({ type: z.literal('state') }),
  z.strictObject({ type: z.literal('mcp'), data: fields }),
])

type Asked = z.output<typeof message>

/** One client at its socket: what it sends, and what it is answered. */
export class OpenEnvConversation {
  readonly #session: HostSession
  #episode: string | undefined

  constructor(session: HostSession) {
    this.#session = session
  }

  /** The answer to one message; errors are answers too. */
  async answer(text: string): Promise<object> {
    let sent: unknown
    try {
      sent = JSON.parse(text)
    } catch (cause) {
      return refusal('INVALID_JSON', `Invalid JSON: ${(cause as Error).message}`)
    }
    const { type } = (sent ?? {}) as { type?: unknown }
    if (!['reset', 'step', 'state', 'mcp'].includes(String(type))) {
      return refusal('UNKNOWN_TYPE', `Unknown message type: ${String(type).slice(0, 100)}`)
    }
    const read = message.safeParse(sent)
    if (!read.success) {
      const errors = read.error.issues.map(({ path, message }) => ({ loc: path, msg: message }))
      return refusal('VALIDATION_ERROR', 'Invalid message', { errors })
    }
    try {
      return await this.#act(read.data)
    } catch (cause) {
      const code = cause instanceof NotServedError ? 'VALIDATION_ERROR' : 'EXECUTION_ERROR'
      return refusal(code, describeCause(cause))
    }
  }

  async #act(asked: Asked): Promise<object> {
    if (asked.type === 'mcp') {
      return { type: 'mcp', data: (await answerRpc(asked.data, this.#session, 'openenv')) ?? {} }
    }
    if (asked.type === 'reset') {
      this.#episode = asked.data.episode_id
      return observation(openingOf(await this.#session.reset(asked.data)))
    }
    const world = await this.#session.world()
    if (asked.type === 'state') return { type: 'state', data: this.#state(world) }
    const { data } = asked
    if (data.type === 'list_tools') return observation({ tools: world.tools.map(toListed) })
    const called = await world.call(data.tool_name, data.arguments)
    return observation(calledOf(data.tool_name, called), called)
  }

  #state({ turns, taskId, isDone }: HostedWorld): object {
    const episode = this.#episode ?? null
    return { episode_id: episode, step_count: turns, task_id: taskId, done: isDone }
  }
}

/** The answer by which a client learns that there is no room. */
export function fullAnswer({ message, active, most }: FullError): object {
  const counts = { active_sessions: active, max_sessions: most }
  return refusal('CAPACITY_REACHED', message, counts)
}

/** An error as the protocol has it. */
export function refusal(code: string, message: string, more: object = {}): object {
  return { type: 'error', data: { message, code, ...more } }
}

/** What a reset shows. */
export function openingOf(world: HostedWorld): object {
  const { opening, taskId } = world
  return { text: textOfMessages(opening), messages: opening, task_id: taskId }
}

function observation(seen: object, called?: Called): object {
  const { reward = null, isDone = false } = called ?? {}
  return {
    type: 'observation',
    data: { observation: { metadata: {}, ...seen }, reward, done: isDone },
  }
}

function toListed({ name, description, schema }: HostedTool): object {
  return { name, description, input_schema: schema }
}

/** OpenEnv's names for problems of a call. */
const errorTypes: Readonly<Record<ToolProblem, string>> = {
  'unknown-tool': 'tool_not_found',
  'malformed-call': 'invalid_args',
  'invalid-arguments': 'invalid_args',
  thrown: 'execution_error',
  timeout: 'timeout',
  'extra-call': 'invalid_args',
}

function calledOf(name: string, { text, problem }: Called): object {
  if (problem) {
    return {
      tool_name: name,
      result: null,
      error: { error_type: errorTypes[problem], message: text },
    }
  }
  const content = [{ type: 'text', text }]
  return {
    tool_name: name,
    result: { content, structured_content: { result: text }, data: text, is_error: false },
    error: null,
  }
}
