import { type Message, type Reply, textOf } from '@espalier/text'
import { z } from 'zod'
import { boxedIn } from '../../base/core/answer.ts'
import type { Transition } from '../../base/core/environment.ts'
import { across } from '../../base/core/failure.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import { openingOf, type PromptTask } from '../../engine/environments/built-in/prompt-task.ts'
import type {
  CustomStepCall,
  OpenedWorld,
  OpenWorldCall,
  WorldBehaviour,
} from '../../engine/environments/opened-world.ts'
import { type OfferedTool, tool } from '../../engine/environments/tools/tool.ts'
import type { InterpreterLimits, Ran } from './child.ts'
import { firstFenced } from './fence.ts'
import type { Interpreters } from './interpreters.ts'
import type { Language } from './language.ts'
import { Session } from './session.ts'

/** How the worlds of an interpreter behave. */
export interface WorldSettings
  extends Pick<InterpreterLimits, 'seconds' | 'memory' | 'characters'> {
  readonly languages: readonly Language[]
  readonly style: 'calls' | 'fences'
  readonly of: (language: Language) => Interpreters
}

/** A world's report. */
export interface Report {
  /** The boxed answer that code printed, if it did. */
  readonly printed?: string
}

/** Opens a world with a session for every language. */
export function openWorld(
  call: OpenWorldCall<PromptTask>,
  settings: WorldSettings,
): OpenedWorld<Report> {
  const { languages, of, seconds } = settings
  const sessions = new Map(
    languages.map(language => [
      language,
      new Session({ interpreters: of(language), seed: call.seed, seconds }),
    ]),
  )
  return { opening: openingFor(call.data, settings), ...behave(sessions, settings, {}) }
}

function openingFor(data: PromptTask, { style, languages }: WorldSettings): readonly Message[] {
  const opening = openingOf(data)
  if (style === 'calls' || opening[0]?.role === 'system') return opening
  const content =
    `Think step by step. To compute something, write ${languages.join(' or ')} code in a fenced ` +
    `block (\`\`\`${languages[0]}); it is run, and you are shown what it gives. Put the final ` +
    'answer into \\boxed{}.'
  return [{ role: 'system', content }, ...opening]
}

type Sessions = ReadonlyMap<Language, Session>

function behave(
  sessions: Sessions,
  settings: WorldSettings,
  before: Report,
): WorldBehaviour<Report> {
  let report = before
  const dispose = async (): Promise<void> => {
    await Promise.all([...sessions.values()].map(session => session.close()))
  }
  const fork = async (): Promise<WorldBehaviour<Report>> => {
    const forks = [...sessions].map(
      async ([language, session]) => [language, await session.fork()] as const,
    )
    return behave(new Map(await Promise.all(forks)), settings, report)
  }
  if (settings.style === 'fences') {
    const step = async (action: Reply, call: CustomStepCall): Promise<Transition> => {
      const { transition, printed } = await stepFences(sessions, action, { call, settings })
      if (printed !== undefined) report = { printed }
      return transition
    }
    return { step, fork, dispose, report: () => report }
  }
  const running: Running = { ranOut: new Set(), replay: undefined }
  const tools = Object.fromEntries(
    [...sessions].map(([language, session]) => [
      language,
      toTool(language, session, { settings, running }),
    ]),
  )
  const step = (action: Reply, call: CustomStepCall): Promise<Transition> =>
    stepCalls(action, call, running)
  return { tools, step, fork, dispose, report: () => report }
}

/** What the calls of a turn share. */
interface Running {
  /** Calls that were stopped because their time was up. */
  readonly ranOut: Set<string>
  replay: Transition | undefined
}

async function stepCalls(
  action: Reply,
  call: CustomStepCall,
  running: Running,
): Promise<Transition> {
  if (action.calls.length === 0) return { kind: 'end' }
  running.ranOut.clear()
  running.replay = call.replay
  const { observed, records } = await call.runCalls(action.calls, call)
  const calls = records.map(record =>
    running.ranOut.has(record.id) ? { ...record, problem: 'timeout' as const } : record,
  )
  const [first, ...rest] = observed
  return { kind: 'continue', observed: [first!, ...rest], calls }
}

function toTool(
  language: Language,
  session: Session,
  { settings, running }: { readonly settings: WorldSettings; readonly running: Running },
): OfferedTool {
  return tool({
    description: `Runs ${language} code and gives what it prints and the value of its last expression. What it defines is kept for later calls.`,
    inputSchema: z.object({ code: z.string() }),
    // The session limits the code itself; waiting for a process must not count.
    limits: { seconds: Number.MAX_SAFE_INTEGER, characters: 3 * settings.characters },
    async execute({ code }, { abortSignal: signal, toolCallId }) {
      const before = running.replay?.calls?.find(record => record.id === toolCallId)
      const replay = before && { replay: { ranOut: before.problem === 'timeout' } }
      const ran = await across('environment', { signal }, () =>
        session.run(code, { signal, ...replay }),
      )
      if (ran.kind === 'gone' && ran.why === 'time') running.ranOut.add(toolCallId)
      if (ran.kind !== 'ok') throw new Error(tell(ran, settings))
      return tell(ran, settings)
    },
  })
}

const tags: Readonly<Record<Language, readonly string[]>> = {
  python: ['py', 'python'],
  javascript: ['js', 'javascript'],
}

async function stepFences(
  sessions: Sessions,
  action: Reply,
  { call, settings }: { readonly call: CustomStepCall; readonly settings: WorldSettings },
): Promise<{ readonly transition: Transition; readonly printed?: string }> {
  const text = textOf(action.message.content)
  const [first] = sessions.keys()
  const known = new Set([...sessions.keys()].flatMap(language => tags[language]))
  const block = firstFenced(text, known.add(''))
  if (!block) return { transition: { kind: 'end' } }
  const language = [...sessions.keys()].find(name => tags[name].includes(block.tag)) ?? first!
  const before = call.replay?.calls?.[0]
  const { signal } = call
  const ran = await across('environment', call, () =>
    sessions.get(language)!.run(block.code, {
      signal,
      ...(before && { replay: { ranOut: before.problem === 'timeout' } }),
    }),
  )
  const output = `Code execution result: ${tell(ran, settings)}`
  const calls = [toRecord({ turn: call.turn, tool: language, input: block, output }, ran)]
  const printed = ran.kind === 'ok' ? boxedIn(ran.printed) : undefined
  if (boxedIn(text) !== undefined || printed !== undefined) {
    return { transition: { kind: 'end', calls }, ...(printed !== undefined && { printed }) }
  }
  return { transition: { kind: 'continue', observed: [{ role: 'user', content: output }], calls } }
}

function toRecord(
  record: Pick<CallRecord, 'turn' | 'tool' | 'input' | 'output'>,
  ran: Ran,
): CallRecord {
  const problem = ran.kind === 'gone' && ran.why === 'time' ? 'timeout' : 'thrown'
  return {
    ...record,
    id: `code_${record.turn}`,
    ...(ran.kind !== 'ok' && { problem }),
    ...(ran.kind !== 'gone' && ran.cut > 0 && { cut: ran.cut }),
    seconds: 0,
  }
}

/** What became of code, as the policy is shown it. */
function tell(ran: Ran, { seconds, memory }: WorldSettings): string {
  if (ran.kind === 'gone') {
    const why =
      ran.why === 'time'
        ? `The code ran longer than ${seconds} seconds and was stopped.`
        : `The interpreter broke down: it may fill ${memory} MiB, and nests so deep.`
    return `${why} What was defined before is gone.`
  }
  const { printed, text, cut } = ran
  const parts = [printed.trimEnd(), text.trimEnd()].filter(part => part !== '')
  const note = cut > 0 ? [`[${cut} more characters not shown]`] : []
  return [...parts, ...note].join('\n') || 'No output.'
}
