import type { Message } from '@espalier/text'
import type { Call } from '../../base/core/call.ts'
import { Failure } from '../../base/core/failure.ts'
import type { ToolExecution } from '../../base/core/tool.ts'
import { seedOf } from '../../base/math/random.ts'
import type { OpenedWorld, OpenWorldCall } from '../../engine/environments/opened-world.ts'
import { type ReturnReport, Returns } from '../../engine/environments/returns.ts'
import { validatorOf } from '../../engine/environments/tools/json-schema.ts'
import type { OfferedTool, Toolset } from '../../engine/environments/tools/tool.ts'
import { calledOf, mcpResult, type Observed, observedOf, refusalOf, toolsOf } from './answer.ts'
import type { Line } from './line.ts'
import { observationText } from './observation-text.ts'
import type { ServerCard } from './server.ts'
import { brokenWorld, openSession, type Session, type SessionOptions } from './session.ts'
import type { OpenEnvTask } from './task.ts'

/** How a policy acts: by one tool with the fields of an action, by words, or by the world's own tools. */
export type Acting =
  | { readonly kind: 'action'; readonly schema: Readonly<Record<string, unknown>> }
  | { readonly kind: 'say'; readonly field: string }
  | { readonly kind: 'tools' }
  | { readonly kind: 'mcp' }

/** What worlds of a server are opened with. */
export interface WorldOptions {
  readonly card: ServerCard
  readonly line: Line
  readonly session: SessionOptions
  readonly acting: Acting
  /** The field of an observation that the policy is shown. */
  readonly observe: string | undefined
  /** What the policy is told before everything else. */
  readonly instruction: string
  /** Whether what the world refuses or breaks at is shown to the policy, or fails the attempt. */
  readonly errors: 'fail' | 'observe'
  /** Whether observations are held to the schema that the server gives for them. */
  readonly schema: 'checked' | 'trusted'
}

/** Opens a world of a server: a session that was waited for in line, and reset for the task. */
export async function openRemoteWorld(
  call: OpenWorldCall<OpenEnvTask>,
  options: WorldOptions,
): Promise<OpenedWorld<ReturnReport>> {
  const { line, acting, instruction } = options
  const { session, first } = await line.enter(call, () => tryOpen(call, options))
  call.defer(async () => {
    await session.close(acting.kind === 'mcp' ? undefined : { type: 'close' })
    line.left()
  })
  const game = new Game(session, options)
  const seen = first === undefined ? undefined : game.begin(first)
  if (seen?.isDone) throw brokenWorld('the world was over when it was reset')
  const observation = seen ? observationText(seen.observation, options.observe) : ''
  const tools = await game.tools(call)
  return {
    opening: opening({ instruction, prompt: call.data.prompt ?? '', observation }),
    tools,
    ...(acting.kind === 'say' && {
      respond: (text, stepping) => game.say(acting.field, text, stepping),
    }),
    isOver: () => game.returns.isDone,
    stepReward: () => game.returns.takeTurn(),
    report: () => game.returns.report(),
  }
}

function opening(words: { instruction: string; prompt: string; observation: string }): Message[] {
  const { instruction, prompt, observation } = words
  const content = [prompt, observation].filter(Boolean).join('\n\n')
  const system: Message[] = instruction === '' ? [] : [{ role: 'system', content: instruction }]
  return [...system, { role: 'user', content: content || 'Begin.' }]
}

interface Begun {
  readonly session: Session
  /** The answer to the reset; undefined in a session without one. */
  readonly first: unknown
}

/** Opens a session and begins it; a server that is full says so, and the session is closed again. */
async function tryOpen({ data, id, signal }: OpenWorldCall<OpenEnvTask>, options: WorldOptions) {
  const isMcp = options.acting.kind === 'mcp'
  const session = await openSession(options.session, { signal })
  try {
    const seed = seedOf('openenv', id).low >>> 1
    const reset = { seed, episode_id: id, ...data.reset }
    const question = isMcp ? rpc('tools/list', {}) : { type: 'reset', data: reset }
    const answer = await session.ask(question, { signal })
    const full = isMcp ? fullRpc(answer) : refusalOf(answer)?.full
    if (full) {
      await session.close()
      return full
    }
    const opened: Begun = { session, first: isMcp ? undefined : answer }
    return { opened }
  } catch (cause) {
    await session.close()
    throw cause
  }
}

/** One world as it is played. */
class Game {
  readonly returns = new Returns()
  readonly #session: Session
  readonly #options: WorldOptions
  #last: Promise<unknown> = Promise.resolve()

  constructor(session: Session, options: WorldOptions) {
    this.#session = session
    this.#options = options
  }

  /** Reads the answer to a reset; a reward in it belongs to no action and is ignored. */
  begin(answer: unknown): Observed {
    return this.#read(answer, this.#options.card.resetObservation)
  }

  #read(answer: unknown, schema: Readonly<Record<string, unknown>>): Observed {
    const { errors } = this.#options
    const refusal = refusalOf(answer)
    if (refusal) {
      const text = `the world refuses (${refusal.code}): ${refusal.message}`
      if (errors === 'observe') throw new Error(text)
      throw brokenWorld(`${text}. errors=observe shows such answers to the policy instead`)
    }
    const seen = observedOf(answer)
    if (this.#options.schema === 'checked') checkObservation(seen, schema)
    return seen
  }

  /** What the policy says is the action; what is wrong with it is told, or fails the attempt. */
  async say(field: string, text: string, call: Call): Promise<string | undefined> {
    try {
      const { observation, isDone } = await this.#step({ [field]: text }, call)
      const answer = observationText(observation, this.#options.observe)
      return isDone ? undefined : answer || 'Go on.'
    } catch (cause) {
      call.signal.throwIfAborted()
      if (cause instanceof Failure || !(cause instanceof Error)) throw cause
      return `Error: ${cause.message}`
    }
  }

  /** The tools that the policy acts by. */
  async tools(call: Call): Promise<Toolset> {
    const { acting } = this.#options
    if (acting.kind === 'say') return {}
    if (acting.kind === 'action') {
      const description = 'Takes one action in the world and gives what is seen after it.'
      const run = (input: object, stepping: Call) => this.#act(input, stepping)
      return { act: offer({ description, schema: acting.schema, run }) }
    }
    const listed = toolsOf(await this.#list(call))
    if (listed.length === 0) throw brokenWorld('the world offers no tools')
    const named = listed.map(({ name, description, schema }) => {
      const run = (input: object, stepping: Call) => this.#call(name, input, stepping)
      return [name, offer({ description, schema, run })] as const
    })
    if (new Set(listed.map(({ name }) => name)).size < listed.length) {
      throw brokenWorld('the world offers two tools of one name')
    }
    return Object.fromEntries(named)
  }

  async #list(call: Call): Promise<unknown> {
    if (this.#options.acting.kind === 'mcp') return await this.#rpc('tools/list', {}, call)
    const answer = await this.#session.ask({ type: 'step', data: { type: 'list_tools' } }, call)
    return observedOf(answer).observation
  }

  async #act(input: object, call: Call): Promise<string> {
    const { observation } = await this.#step(input, call)
    return observationText(observation, this.#options.observe)
  }

  async #call(name: string, input: object, call: Call): Promise<unknown> {
    if (this.#options.acting.kind === 'mcp') {
      return mcpResult(await this.#rpc('tools/call', { name, arguments: input }, call))
    }
    const action = { type: 'call_tool', tool_name: name, arguments: input }
    return calledOf((await this.#step(action, call)).observation)
  }

  /** Calls of one turn run side by side; here each waits for the one before, which may end the world. */
  #step(action: object, call: Call): Promise<Observed> {
    const step = this.#last.then(() => this.#stepNow(action, call))
    this.#last = step.catch(() => {})
    return step
  }

  async #stepNow(action: object, call: Call): Promise<Observed> {
    if (this.returns.isDone) throw new Error('this world has ended; nothing was done')
    const answer = await this.#session.ask({ type: 'step', data: action }, call)
    this.#options.line.moved()
    const seen = this.#read(answer, this.#options.card.observation)
    this.returns.isDone = seen.isDone
    this.returns.add(seen.reward)
    return seen
  }

  async #rpc(method: string, params: object, call: Call): Promise<unknown> {
    const question = rpc(method, params)
    const answer = rpcAnswer(await this.#session.ask(question, call))
    this.#options.line.moved()
    if (answer.id !== question.id) {
      throw brokenWorld(`the server answered ${String(answer.id)} where ${question.id} was asked`)
    }
    if (answer.error === undefined) return answer.result
    throw new Error(answer.error)
  }
}

function checkObservation({ observation }: Observed, schema: Readonly<Record<string, unknown>>) {
  // `done` and `reward` come beside the observation, and subclasses may add fields, so neither is checked.
  const { required: _, additionalProperties: __, ...loose } = schema
  const [problem] = validatorOf(loose)(observation)
  if (problem === undefined) return
  throw brokenWorld(
    `the observation is not what the server’s schema says: ${problem}. schema=trusted takes it as it is`,
  )
}

interface Offer {
  readonly description: string | undefined
  readonly schema: Readonly<Record<string, unknown>>
  readonly run: (input: object, call: Call) => Promise<unknown>
}

function offer({ description, schema, run }: Offer): OfferedTool {
  return {
    ...(description !== undefined && { description }),
    inputSchema: schema,
    // No limit here: a world that hangs must fail by the session's limit, not as a mistake of the policy.
    limits: { seconds: Number.POSITIVE_INFINITY },
    execute: (input: object, { abortSignal }: ToolExecution) => run(input, { signal: abortSignal }),
  }
}

let requests = 0

function rpc(method: string, params: object) {
  return { jsonrpc: '2.0', id: ++requests, method, params } as const
}

function rpcAnswer(answer: unknown): { id: unknown; result: unknown; error: string | undefined } {
  const { id, result, error } = (answer ?? {}) as Readonly<Record<string, unknown>>
  if (error === undefined || error === null) return { id, result, error: undefined }
  const { message } = error as Readonly<Record<string, unknown>>
  return { id, result, error: String(message ?? 'no message').slice(0, 2000) }
}

function fullRpc(answer: unknown) {
  const { error } = (answer ?? {}) as { error?: { data?: Record<string, unknown> | null } }
  const { active_sessions: active, max_sessions: most } = error?.data ?? {}
  if (typeof active !== 'number' || typeof most !== 'number') return undefined
  return { active, most }
}
