import type { ContentPart, Message, ToolDefinition } from '@espalier/text'
import type { StepCall } from '../../../base/core/environment.ts'
import { describeCause, Failure } from '../../../base/core/failure.ts'
import { type Lane, type Lanes, makeLane } from '../../../base/core/lane.ts'
import { DeadlineError, type Stopping, withDeadline } from '../../../base/core/process/deadline.ts'
import type { CallRecord, ToolLimits, ToolProblem } from '../../../base/core/tool.ts'
import { isRecord } from './json-schema.ts'
import { recorded } from './recorded.ts'
import { type InputSchema, readSchema } from './schema.ts'
import { partsOf, textOfParts } from './shown-images.ts'
import type { OfferedTool } from './tool.ts'
import { toText } from './tool-output.ts'

/** A tool that has been read and checked. */
export interface ReadyTool {
  readonly name: string
  /** The definition that policies see. */
  readonly definition: ToolDefinition
  readonly schema: InputSchema
  readonly limits: Required<ToolLimits>
  readonly isOutside: boolean
  execute(input: unknown, execution: object): unknown
}

/** The answer to one call, before it is cut to its limit. */
export interface Answer {
  readonly input: unknown
  readonly output: string
  /** Its content in parts, if it shows images. */
  readonly content?: readonly ContentPart[]
  readonly problem?: ToolProblem
  /** Characters that were cut off when this was recorded. */
  readonly cut?: number
}

/** What calls share with the rest of the run. */
export interface CallSurroundings {
  /** Tools of one scope and name share their limit of concurrency over the whole run. */
  readonly scope: string
  readonly lanes: Lanes
  readonly clock?: () => number
  /** `one`: calls after the first of a turn are answered with an error. @default 'many' */
  readonly calls?: 'one' | 'many'
}

/** One of a turn's calls. */
export interface OneCall extends StepCall {
  /** Which of the turn's calls it is, from 0. */
  readonly index: number
}

/** The limits of tools that set none. */
export const defaultLimits = {
  seconds: 30,
  characters: 20_000,
  concurrency: Number.POSITIVE_INFINITY,
}

const known = new WeakMap<OfferedTool, ReadyTool>()

/** The tool if it was read before: worlds may share it. */
export function knownTool(name: string, offered: OfferedTool): ReadyTool | undefined {
  const ready = known.get(offered)
  return ready?.name === name ? ready : undefined
}

/** Reads one tool; throws an error that names it if something is wrong. */
export async function readTool(name: string, offered: OfferedTool): Promise<ReadyTool> {
  // Code without types may offer nothing under a name.
  const { execute, limits, effects, inputSchema, description } = offered ?? {}
  if (typeof execute !== 'function') {
    throw new TypeError(`Tool "${name}" has no execute; worlds run their tools themselves.`)
  }
  const bounds = { ...defaultLimits, ...limits }
  for (const [limit, value] of Object.entries(bounds)) {
    if (value > 0) continue
    throw new RangeError(`Tool "${name}" has a limit of ${value} ${limit}; it must be above 0.`)
  }
  const schema = await readSchema(inputSchema).catch(cause => {
    throw new TypeError(`Tool "${name}": ${describeCause(cause)}`, { cause })
  })
  const { parameters } = schema
  const ready: ReadyTool = {
    name,
    definition: {
      type: 'function',
      function: { name, ...(description !== undefined && { description }), parameters },
    },
    schema,
    limits: bounds,
    isOutside: effects === 'outside',
    // The schema has validated the input before this is called.
    execute: (input, execution) => execute.call(offered, input as never, execution as never),
  }
  known.set(offered, ready)
  return ready
}

/** An error that the policy is shown. */
export function problemOf(problem: ToolProblem, input: unknown, text: string): Answer {
  return { problem, input, output: `Error: ${text}` }
}

/** A validated call and where it runs. */
export interface ToolRun {
  readonly call: OneCall
  /** The id of the call. */
  readonly id: string
  readonly surroundings: CallSurroundings
}

/** Runs a tool within its bounds, or gives its recorded answer if it must not run again. */
export function runTool(tool: ReadyTool, input: unknown, run: ToolRun): Answer | Promise<Answer> {
  const { call, surroundings } = run
  const recorded = tool.isOutside ? call.replay?.calls?.[call.index] : undefined
  if (recorded) return replayed(tool, input, recorded)
  const work = (): Promise<Answer> => execute(tool, input, run)
  const inLane = (): Promise<Answer> => surroundings.lanes.tools.run(call, work)
  const own = ownLane(tool, surroundings)
  // Wait for the tool's own limit first: waiting must not occupy a place in the shared lane.
  return own ? own.run(call, inLane) : inLane()
}

function replayed(tool: ReadyTool, input: unknown, recorded: CallRecord): Answer {
  if (recorded.tool !== tool.name) {
    const cause = new Error(`A call of ${tool.name} was recorded as one of ${recorded.tool}.`)
    throw new Failure('environment', { cause })
  }
  const { output, content, problem, cut } = recorded
  return {
    input,
    output,
    ...(content && { content }),
    ...(problem && { problem }),
    ...(cut && { cut }),
  }
}

/**
 * What a tool is given besides its input. Its signal is made when it is first read. All share one getter: with an
 * object literal, each would have its own, and V8 would make a hidden class for every call.
 */
class Execution {
  static readonly #signal: PropertyDescriptor & ThisType<Execution> = {
    enumerable: true,
    get() {
      return this.#stopping()
    },
  }
  readonly toolCallId: string
  readonly messages: readonly Message[]
  readonly #stopping: Stopping

  constructor(toolCallId: string, messages: readonly Message[], stopping: Stopping) {
    this.toolCallId = toolCallId
    this.messages = messages
    this.#stopping = stopping
    Object.defineProperty(this, 'abortSignal', Execution.#signal)
  }
}

async function execute(tool: ReadyTool, given: unknown, { call, id }: ToolRun): Promise<Answer> {
  const { name, limits } = tool
  const input = inputOf(tool, given)
  let result: unknown
  try {
    result = await withDeadline(limits.seconds, call, stopping => {
      const begun = tool.execute(given, new Execution(id, call.messages, stopping))
      return isRecord(begun) ? lastOf(begun, stopping) : begun
    })
  } catch (cause) {
    call.signal.throwIfAborted()
    if (cause instanceof Failure) throw cause
    if (cause instanceof DeadlineError) {
      const text = `${name} took longer than ${cause.seconds} seconds and was stopped.`
      return problemOf('timeout', input, text)
    }
    return problemOf('thrown', input, `${name} failed: ${describeCause(cause)}`)
  }
  try {
    const content = partsOf(result)
    return content
      ? { input, output: textOfParts(content), content }
      : { input, output: toText(result) }
  } catch (cause) {
    // Not the policy's mistake: the tool returned something that no message can carry.
    throw new Failure('tool', {
      cause: new Error(`${name} gave a result that is not JSON: ${inOneLine(cause)}`, { cause }),
    })
  }
}

/** What the schema made of a call, for its record. */
function inputOf({ name }: ReadyTool, given: unknown): unknown {
  try {
    return recorded(given)
  } catch (cause) {
    throw new Failure('tool', {
      cause: new Error(`${name} has a schema whose result cannot be kept: ${describeCause(cause)}`),
    })
  }
}

/** JSON.stringify draws a circle in several lines. */
function inOneLine(cause: unknown): string {
  return describeCause(cause).replace(/\s*\n\s*/g, ' ')
}

/** AI SDK tools may give preliminary results one after the other; the last one counts. */
async function lastOf(result: unknown, stopping: Stopping): Promise<unknown> {
  const value = await result
  if (!isRecord(value) || !(Symbol.asyncIterator in value)) return value
  let last: unknown
  for await (const item of value as unknown as AsyncIterable<unknown>) {
    if (stopping().aborted) break
    last = item
  }
  return last
}

const toolLanes = new WeakMap<Lanes, Map<string, Lane>>()

function ownLane(tool: ReadyTool, { lanes, scope }: CallSurroundings): Lane | undefined {
  const limit = tool.limits.concurrency
  if (limit === Number.POSITIVE_INFINITY) return undefined
  const ofRun = toolLanes.get(lanes) ?? new Map<string, Lane>()
  toolLanes.set(lanes, ofRun)
  const key = `${scope}/${tool.name}/${limit}`
  const lane = ofRun.get(key) ?? makeLane(key, limit)
  ofRun.set(key, lane)
  return lane
}
