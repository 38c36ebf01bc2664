import { setMaxListeners } from 'node:events'
import type { StepCall } from '../core/environment.ts'
import type { CallAttempt, ToolDefinition, ToolMessage } from '../core/message.ts'
import type { CallRecord } from '../core/tool.ts'
import { isRecord, signatureOf } from './json-schema.ts'
import {
  type Answer,
  type CallSurroundings,
  defaultLimits,
  type OneCall,
  problemOf,
  type ReadyTool,
  readTool,
  runTool,
} from './ready-tool.ts'
import type { Toolset } from './tool.ts'
import { showAtMost } from './tool-output.ts'

/** What the calls of one turn gave, in the order they were made. */
export interface CallResults {
  readonly observed: readonly ToolMessage[]
  readonly records: readonly CallRecord[]
}

/** Runs the calls of a turn in parallel; what the policy did wrong is an observation. */
export type RunCalls = (attempts: readonly CallAttempt[], call: StepCall) => Promise<CallResults>

/** Reads the tools of a world: as policies are shown them, and the function that runs their calls. */
export async function readTools(
  tools: Toolset,
  surroundings: CallSurroundings,
): Promise<{ readonly definitions: readonly ToolDefinition[]; readonly runCalls: RunCalls }> {
  const ready = new Map<string, ReadyTool>()
  const definitions: ToolDefinition[] = []
  for (const [name, offered] of Object.entries(tools)) {
    const read = await readTool(name, offered)
    const { description } = offered
    ready.set(name, read)
    definitions.push({
      type: 'function',
      function: {
        name,
        ...(description !== undefined && { description }),
        parameters: read.schema.parameters,
      },
    })
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
  running: Running,
): Promise<CallResults> {
  // Node takes more than ten listeners for a leak.
  if (attempts.length > 8) setMaxListeners(0, call.signal)
  const settled = await Promise.allSettled(
    attempts.map((attempt, index) => runOne(attempt, { ...call, index }, running)),
  )
  const records = settled.map(result => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
  const observed = records.map(({ id, tool, output }): ToolMessage => {
    const name = running.ready.has(tool) ? { name: tool } : {}
    return { role: 'tool', tool_call_id: id, ...name, content: output }
  })
  return { observed, records }
}

async function runOne(attempt: CallAttempt, call: OneCall, running: Running): Promise<CallRecord> {
  const now = running.surroundings.clock ?? (() => 0)
  const started = now()
  const { input, output, problem, ...recorded } = await answerCall(attempt, call, running)
  const limit = running.ready.get(attempt.name ?? '')?.limits.characters ?? defaultLimits.characters
  const shown = showAtMost(output, limit)
  const cut = recorded.cut ?? shown.cut
  return {
    turn: call.turn,
    id: attempt.id,
    tool: attempt.name ?? '',
    input,
    output: shown.text,
    ...(problem && { problem }),
    ...(cut > 0 && { cut }),
    seconds: now() - started,
  }
}

async function answerCall(attempt: CallAttempt, call: OneCall, running: Running): Promise<Answer> {
  const { ready, surroundings } = running
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
  const read = await readArguments(tool, written)
  return 'problem' in read
    ? read
    : await runTool(tool, read.input, { call, id: attempt.id, surroundings })
}

function offer(ready: ReadonlyMap<string, ReadyTool>): string {
  if (ready.size === 0) return 'There are no tools here.'
  const names = [...ready.keys()]
  const more = names.length > 50 ? `, and ${names.length - 50} more` : ''
  return `Tools: ${names.slice(0, 50).join(', ')}${more}.`
}

async function readArguments(
  tool: ReadyTool,
  written: string,
): Promise<Answer | { input: unknown }> {
  const { name, schema } = tool
  const expected = (): string => `Expected ${signatureOf(name, schema.parameters)}.`
  let value: unknown
  try {
    value = written.trim() === '' ? {} : JSON.parse(written)
  } catch {
    const text = `the arguments of ${name} are not valid JSON.`
    return problemOf('malformed-call', written, `${text} ${expected()}`)
  }
  const result = isRecord(value)
    ? await schema.validate(value)
    : ({ kind: 'invalid', problems: ['they must be a JSON object'] } as const)
  if (result.kind === 'valid') return { input: result.value }
  const problems = result.problems.slice(0, 5).join('; ')
  const text = `invalid arguments for ${name}: ${problems}. ${expected()}`
  return problemOf('invalid-arguments', value, text)
}
