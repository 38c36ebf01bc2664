import type { PythonValue } from '@espalier/text/python'
import { dumps, equals, parseJson } from '@espalier/text/python'
import { isSameState } from './database.ts'
import type { Tau2Domain } from './domain.ts'
import { callMethod, merged, runFunctionCall } from './framework.ts'
import type { Tau2Message, Tau2ToolCall } from './message.ts'
import { attributeOf, setAttribute } from './program/attributes.ts'
import { BindingError, call } from './program/call.ts'
import { ProgramDate } from './program/dates.ts'
import { jsonable } from './program/library/json.ts'
import { dump, validateModel } from './program/models/pydantic.ts'
import { isIn, nameOf } from './program/operators.ts'
import { str } from './program/show.ts'
import {
  type Dict,
  Instance,
  PythonError,
  PythonTuple,
  plain,
  unwrap,
  type Value,
} from './program/values.ts'
import { touch, type Version } from './program/versions.ts'
import type { FunctionCall, InitialState, Requestor } from './task.ts'
import { toolsOf } from './toolkit.ts'

/** How the databases of both sides differ from those loaded, one map for each. */
export type WorldDifferences = readonly ReadonlyMap<string, string | null>[]

/** The answer to a tool call. */
export interface ToolAnswer {
  readonly content: string
  readonly error: boolean
  /** What was wrong with the call, if it raised. */
  readonly problem?: AnswerProblem
}

/** What was wrong with a call that raised. */
export type AnswerProblem = 'unknown-tool' | 'invalid-arguments' | 'thrown'

/** A replay led to another state than the messages record. */
class ReplayError extends PythonError {
  constructor(message: string) {
    super('ValueError', message)
  }
}

/** The databases and devices of one attempt: a state of the domain's program. */
export class Tau2World {
  readonly domain: Tau2Domain
  readonly solo: boolean
  #version: Version
  /** How many random texts the program has drawn. */
  #drawn = 0

  constructor(
    domain: Tau2Domain,
    { from, solo = false }: { readonly from?: Version; readonly solo?: boolean } = {},
  ) {
    this.domain = domain
    this.solo = solo
    this.#version = domain.versions.branch(from ?? domain.start)
  }

  /** Runs something in this world's state. */
  #run<T>(action: () => T): T {
    const { domain } = this
    if (this.#version.isFrozen) this.#version = domain.versions.branch(this.#version)
    return domain.drawing(
      () => domain.draw(this.#drawn++),
      () => domain.versions.within(this.#version, action),
    )
  }

  /** Calls a tool, as the original's `make_tool_call`: nothing is synced, errors are raised. */
  call(requestor: Requestor, name: string, given: Dict): Value {
    return this.#run(() => this.#call(requestor, name, given))
  }

  #call(requestor: Requestor, name: string, given: Dict): Value {
    requireFree(given)
    const { agent, user } = this.domain
    if (requestor === 'user') {
      if (this.solo)
        throw new PythonError('ValueError', 'User tool calls are not allowed in solo mode')
      return useTool(user, name, given, 'User tools not available')
    }
    if (this.solo && user && toolsOf(user.class).has(name)) return useTool(user, name, given, '')
    return useTool(agent, name, given, 'Tools not available')
  }

  /** Answers a tool call: what is raised becomes the answer, and both sides are synced. */
  respond({
    requestor,
    name,
    arguments: given,
  }: Pick<Tau2ToolCall, 'requestor' | 'name' | 'arguments'>): ToolAnswer {
    return this.#run(() => {
      try {
        const value = this.#call(requestor, name, given)
        this.#sync()
        return { content: toJsonText(value), error: false }
      } catch (error) {
        if (!(error instanceof PythonError) || error instanceof UnsupportedAnswer) throw error
        return { content: `Error: ${error.message}`, error: true, problem: problemOf(error, name) }
      }
    })
  }

  #sync(): void {
    callMethod(this.domain.environment, 'sync_tools')
  }

  /** Brings what both sides see of each other up to date. */
  sync(): void {
    if (this.domain.syncs) this.#run(() => this.#sync())
  }

  /** Runs any method of a toolkit and syncs, as tasks ask for it. */
  runFunction(given: FunctionCall): Value {
    return this.#run(() => runFunctionCall(this.domain.environment, given))
  }

  /** Puts the world into the state that a task begins with. */
  initialize({ agentData, userData, actions }: InitialState): void {
    this.#run(() => {
      const { agent, user } = this.domain
      if (agentData) updateDatabase(agent, agentData, user)
      if (userData && user) updateDatabase(user, userData, agent)
    })
    for (const action of actions) this.runFunction(action)
  }

  /** Sets which calls of tools that only read are written into the database. */
  logReads(names: readonly string[]): void {
    if (!this.domain.logsReads) return
    this.#run(() => call(attributeOf(this.domain.agent, 'set_read_log_allowlist'), [[...names]]))
  }

  /** Repeats the calls in the messages; raises if an answer differs from the recorded one. */
  replay(
    messages: readonly Tau2Message[],
    { strict = true }: { readonly strict?: boolean } = {},
  ): void {
    if (this.solo && messages.some(({ role }) => role === 'user')) {
      throw new PythonError('AssertionError', 'User messages are not allowed in solo mode')
    }
    for (const [toolCall, recorded] of callsIn(messages)) {
      if (!this.domain.isMutating(toolCall.name)) continue
      const { content } = this.respond(toolCall)
      if (strict && !isSameContent(content, recorded ?? '')) {
        throw new ReplayError(
          `Tool call:\n${toolCall.name}\n\nReturned:\n${content}\n\nExpected:\n${recorded ?? ''}`,
        )
      }
    }
    this.sync()
  }

  /** The original's hash of the agent's database. */
  hash(): string {
    return this.#run(() => this.domain.hash(this.domain.agent, this.#version))
  }

  /** The original's hash of the user's database, `null` if users have none. */
  userHash(): string | null {
    const { user } = this.domain
    return user ? this.#run(() => this.domain.hash(user, this.#version)) : null
  }

  /** How both sides' databases differ from those loaded. */
  differences(): WorldDifferences {
    const { agent, user } = this.domain
    return this.#run(() => {
      const isShared = user === null || user.fields.get('db') === agent.fields.get('db')
      const kits = isShared ? [agent] : [agent, user]
      return kits.map(kit => this.domain.differences(kit, this.#version))
    })
  }

  /** Whether the world differs from the loaded one in exactly this. */
  holds(wanted: WorldDifferences): boolean {
    const { agent, user, versions } = this.domain
    const kits = user ? [agent, user] : [agent]
    return this.differences().every((found, index) => {
      const image = this.domain.image(kits[index] as Instance)
      return isSameState(image, versions, [found, wanted[index] ?? new Map()])
    })
  }

  /** Freezes and returns the current state; the world goes on in a new one. */
  freeze(): Version {
    const version = this.#version
    this.#version = this.domain.versions.branch(version)
    return version
  }

  /** A world that begins as this one is and goes its own way. */
  fork(): Tau2World {
    const forked = new Tau2World(this.domain, { from: this.#version, solo: this.solo })
    forked.#drawn = this.#drawn
    return forked
  }
}

function problemOf(error: PythonError, tool: string): AnswerProblem {
  if (error.message === `Tool '${tool}' not found.`) return 'unknown-tool'
  const isBinding = error instanceof BindingError && error.called.name === tool
  return isBinding || error.type === 'ValidationError' ? 'invalid-arguments' : 'thrown'
}

/** Refuses argument names that the original's own call uses. */
function requireFree(given: Dict): void {
  for (const name of ['self', 'tool_name']) {
    if (given.has(name)) {
      throw new PythonError(
        'TypeError',
        `Environment.make_tool_call() got multiple values for argument '${name}'`,
      )
    }
  }
  if (given.has('requestor')) {
    throw new PythonError(
      'TypeError',
      "tau2.environment.environment.Environment.make_tool_call() got multiple values for keyword argument 'requestor'",
    )
  }
}

function useTool(kit: Instance | null, name: string, given: Dict, missing: string): Value {
  if (kit === null) throw new PythonError('ValueError', missing)
  if (!toolsOf(kit.class).has(name))
    throw new PythonError('ValueError', `Tool '${name}' not found.`)
  return call(attributeOf(kit, name), [], given as Map<string, Value>)
}

/** Merges data into the database of one side; from then on both sides have that database. */
function updateDatabase(kit: Instance, data: Dict, other: Instance | null): void {
  const database = kit.fields.get('db') as Instance
  const known = [...data].every(([name, value]) =>
    mergeTable(database.fields.get(name as string), value),
  )
  if (!known) {
    const updated = validateModel(database.class, merged(dump(database) as Dict, data))
    setAttribute(kit, 'db', updated)
  }
  if (other) setAttribute(other, 'db', kit.fields.get('db') as Instance)
}

/** Merges records into a table of free records in place; `false` for tables of another kind. */
function mergeTable(table: Value | undefined, data: Value): boolean {
  const records = table instanceof Instance ? table.fields.get('data') : undefined
  const added = data instanceof Map ? data.get('data') : undefined
  if (!(records instanceof Map) || !(added instanceof Map) || (data as Dict).size !== 1)
    return false
  mergeInto(records, added)
  return true
}

function mergeInto(into: Dict, from: Dict): void {
  touch(into)
  for (const [key, value] of from) {
    const before = into.get(key)
    if (before instanceof Map && value instanceof Map) mergeInto(before, value)
    else into.set(key, value)
  }
}

/** An answer that the original cannot serialise; there the attempt breaks off. */
class UnsupportedAnswer extends PythonError {}

/** What a tool returned as the content of a message: bare numbers become texts, models stay exact. */
export function toJsonText(value: Value): string {
  const known = unwrap(value)
  if (typeof known === 'string') return known
  return dumps(plain(jsonable(processed(value), str)))
}

function processed(value: Value): Value {
  const known = unwrap(value)
  if (known instanceof Instance && known.class.kind === 'model') return dump(known)
  if (known === null || typeof known === 'string') return known
  if (isIn(nameOf(known), ['int', 'float', 'bool'])) return str(known)
  if (Array.isArray(known)) return known.map(processed)
  if (known instanceof PythonTuple) return new PythonTuple(known.items.map(processed))
  if (known instanceof Map) return new Map([...known].map(([key, item]) => [key, processed(item)]))
  if (known instanceof ProgramDate) return known.text('T')
  throw new UnsupportedAnswer('ValueError', `Unsupported type: <class '${nameOf(known)}'>`)
}

/** The tool calls of a conversation with the contents they were answered with. */
function* callsIn(
  messages: readonly Tau2Message[],
): Generator<readonly [Tau2ToolCall, string | null]> {
  const rest = [...messages].reverse()
  const pairs: (readonly [Tau2ToolCall, string | null])[] = []
  while (rest.length > 0) {
    const message = rest.pop() as Tau2Message
    if (message.role === 'tool') {
      throw new PythonError(
        'ValueError',
        'Tool message not expected. Tool messages should always follow a tool call.',
      )
    }
    if (message.role === 'system') continue
    for (const toolCall of message.tool_calls ?? [])
      pairs.push([toolCall, answerOf(rest.pop(), toolCall)])
  }
  yield* pairs
}

const CLASSES = {
  assistant: 'AssistantMessage',
  user: 'UserMessage',
  system: 'SystemMessage',
} as const

function answerOf(message: Tau2Message | undefined, { id }: Tau2ToolCall): string | null {
  if (message === undefined) throw new PythonError('ValueError', 'Tool message expected. Got None.')
  if (message.role !== 'tool') {
    throw new PythonError(
      'ValueError',
      `Tool message expected. Got <class 'tau2.data_model.message.${CLASSES[message.role]}'>`,
    )
  }
  if (message.id === id) return message.content
  throw new PythonError('ValueError', `Tool call id mismatch. Got ${id} and ${message.id}`)
}

function isSameContent(left: string, right: string): boolean {
  return left === right || equals(parsed(left), parsed(right))
}

function parsed(text: string): PythonValue {
  try {
    return parseJson(text)
  } catch (error) {
    if (error instanceof PythonError) return text
    throw error
  }
}
