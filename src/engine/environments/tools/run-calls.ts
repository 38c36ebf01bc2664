import { setMaxListeners } from 'node:events'
import type { CallAttempt, ToolDefinition, ToolMessage } from '@espalier/text'
import type { StepCall } from '../../../base/core/environment.ts'
import { describeCause, Failure } from '../../../base/core/failure.ts'
import type { CallRecord } from '../../../base/core/tool.ts'
import { isRecord, signatureOf } from './json-schema.ts'
import {
  type Answer,
  type CallSurroundings,
  defaultLimits,
  knownTool,
  type OneCall,
  problemOf,
  type ReadyTool,
  readTool,
  runTool,
} from './ready-tool.ts'
import { canBeRecorded } from './recorded.ts'
import type { Validation } from './schema.ts'
import type { Toolset } from './tool.ts'
import { showAtMost } from './tool-output.ts'

/** What the calls of one turn gave, in the order they were made. */
export interface CallResults {
  readonly observed: readonly ToolMessage[]
  readonly records: readonly CallRecord[]
}

/** Runs the calls of a turn in parallel; what the policy did wrong is an observation. */
export type RunCalls = (attempts: readonly CallAttempt[], call: StepCall) => Promise<CallResults>

/** Reads the tools of a world; returns their definitions and the function that runs their calls. */
export async function readTools(
  tools: Toolset,
  surroundings: CallSurroundings,
): Promise<{ readonly definitions: readonly ToolDefinition[]; readonly runCalls: RunCalls }> {
  const ready = new Map<string, ReadyTool>()
  const definitions: ToolDefinition[] = []
  for (const [name, offered] of Object.entries(tools)) {
    const read = knownTool(name, offered) ?? (await readTool(name, offered))
    ready.set(name, read)
    definitions.push(read.definition)
  }
  return {
    definitions,
    runCalls: (attempts, call) => runAll(attempts, call, { ready, surroundings }),
  }
}

interface Running {
  readonly ready: ReadonlyMap<string, ReadyTool>
  readonly surroundings: CallSurroundings
}

async function runAll(
  attempts: readonly CallAttempt[],
  call: StepCall,
  given: Running,
): Promise<CallResults> {
  // Node warns of a leak from the eleventh listener on.
  if (attempts.length > 8) setMaxListeners(0, call.signal)
  const running = attempts.map((attempt, index) => runOne(attempt, numbered(call, index), given))
  const records = running.length === 1 ? [await running[0]!] : await all(running)
  const observed = records.map(({ id, tool, output }): ToolMessage => {
    if (!given.ready.has(tool)) return { role: 'tool', tool_call_id: id, content: output }
    return { role: 'tool', tool_call_id: id, name: tool, content: output }
  })
  return { observed, records }
}

function numbered({ signal, messages, turn, replay }: StepCall, index: number): OneCall {
  const one = { signal, messages, turn, index }
  return replay ? { ...one, replay } : one
}

/** All results, once every promise has settled; then throws the first failure in their order. */
async function all<T>(running: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(running)
  return await Promise.all(running)
}

async function runOne(attempt: CallAttempt, call: OneCall, running: Running): Promise<CallRecord> {
  const now = running.surroundings.clock ?? (() => 0)
  const started = now()
  const asked = readCall(attempt, call, running)
  const answer =
    'output' in asked ? asked : await answerCall(asked, { call, id: attempt.id, running })
  const limit = running.ready.get(attempt.name ?? '')?.limits.characters ?? defaultLimits.characters
  const shown = showAtMost(answer.output, limit)
  const { input, content, problem, cut = shown.cut } = answer
  const { turn } = call
  const { id, name: tool = '' } = attempt
  const output = shown.text
  const seconds = now() - started
  // Most are plain, and Node 20 takes microseconds for a literal that spreads and goes on.
  if (!problem && !content && cut === 0) return { turn, id, tool, input, output, seconds }
  // What was cut is shown as text, without its images.
  const images = cut === 0 && content ? { content } : {}
  const unusual = { ...images, ...(problem && { problem }), ...(cut > 0 && { cut }) }
  return { turn, id, tool, input, output, ...unusual, seconds }
}

/** Synchronous if possible: most schemas and tools need no promise. */
function answerCall(
  { tool, value }: AskedTool,
  { call, id, running }: { readonly call: OneCall; readonly id: string; readonly running: Running },
): Answer | Promise<Answer> {
  const answer = (checked: Validation): Answer | Promise<Answer> =>
    checked.kind === 'invalid'
      ? invalidArguments(tool, value, checked.problems)
      : runTool(tool, checked.value, { call, id, surroundings: running.surroundings })
  const checked = validated(tool, value)
  return checked instanceof Promise ? checked.then(answer) : answer(checked)
}

/** A schema of somebody's own may throw at what the policy wrote, as `BigInt` does at a text. */
function validated({ schema }: ReadyTool, value: unknown): Validation | Promise<Validation> {
  const invalid = (cause: unknown): Validation => {
    if (cause instanceof Failure) throw cause
    return { kind: 'invalid', problems: [describeCause(cause)] }
  }
  try {
    const checked = schema.validate(value)
    return checked instanceof Promise ? checked.catch(invalid) : checked
  } catch (cause) {
    return invalid(cause)
  }
}

/** A tool, and what it is called with before that is checked. */
interface AskedTool {
  readonly tool: ReadyTool
  readonly value: unknown
}

/** The tool that a call names and what it is called with, or what is wrong with the call. */
function readCall(
  attempt: CallAttempt,
  call: OneCall,
  { ready, surroundings }: Running,
): Answer | AskedTool {
  const written = attempt.kind === 'parsed' ? attempt.arguments : attempt.raw
  if (surroundings.calls === 'one' && call.index > 0) {
    return problemOf('extra-call', written, 'one call per turn; this one was not run. Call again.')
  }
  if (attempt.kind === 'malformed') {
    const text = `this call could not be read: ${attempt.problem}. ${offer(ready)}`
    return problemOf('malformed-call', written, text)
  }
  const tool = ready.get(attempt.name)
  if (!tool) {
    const name = JSON.stringify(attempt.name.slice(0, 80))
    return problemOf('unknown-tool', written, `there is no tool called ${name}. ${offer(ready)}`)
  }
  return readArguments(tool, written)
}

function offer(ready: ReadonlyMap<string, ReadyTool>): string {
  if (ready.size === 0) return 'There are no tools here.'
  const names = [...ready.keys()]
  const more = names.length > 50 ? `, and ${names.length - 50} more` : ''
  return `Tools: ${names.slice(0, 50).join(', ')}${more}.`
}

function readArguments(tool: ReadyTool, written: string): Answer | AskedTool {
  let value: unknown
  try {
    value = written.trim() === '' ? {} : JSON.parse(written)
  } catch {
    const text = `the arguments of ${tool.name} are not valid JSON.`
    return problemOf('malformed-call', written, `${text} ${expected(tool)}`)
  }
  if (!canBeRecorded(value, written)) {
    return problemOf('malformed-call', written, `the arguments of ${tool.name} nest too deep.`)
  }
  if (isRecord(value)) return { tool, value }
  return invalidArguments(tool, value, ['they must be a JSON object'])
}

function invalidArguments(tool: ReadyTool, value: unknown, problems: readonly string[]): Answer {
  const first = problems.slice(0, 5).join('; ')
  const text = `invalid arguments for ${tool.name}: ${first}. ${expected(tool)}`
  return problemOf('invalid-arguments', value, text)
}

function expected({ name, schema }: ReadyTool): string {
  return `Expected ${signatureOf(name, schema.parameters)}.`
}
