import { type Message, type ToolDefinition, textOf } from '@espalier/text'
import { isRun } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import { readTrajectories } from './import.ts'

/** A task whose world is what was seen in a conversation of the past. */
export interface RecordedTaskLine {
  readonly id: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  readonly calls: readonly {
    readonly name: string
    readonly input: unknown
    readonly output: string
  }[]
  /** What was answered then. */
  readonly answer?: string
}

/** A conversation as it was kept. */
interface Conversation {
  readonly id: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
}

/**
 * Tasks of the conversations of a run, or of a file in a format that `import` reads: one for every message of a user
 * that was answered, with the conversation up to it.
 */
export async function* recordTasks(
  source: string,
  from: string | undefined,
): AsyncGenerator<RecordedTaskLine> {
  const conversations = isRun(source) ? ofRun(source) : ofFile(source, from ?? 'otel')
  for await (const conversation of conversations) yield* tasksOf(conversation)
}

async function* ofRun(run: string): AsyncGenerator<Conversation> {
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) {
    for (const { trajectory, tree } of group.members) {
      yield { id: trajectory.id, messages: trajectory.messages, tools: tree.tools }
    }
  }
}

async function* ofFile(file: string, from: string): AsyncGenerator<Conversation> {
  for await (const { task, member, messages, tools } of readTrajectories(file, from)) {
    yield { id: member === 0 ? task : `${task}/${member}`, messages, tools }
  }
}

function tasksOf({ id, messages, tools }: Conversation): readonly RecordedTaskLine[] {
  const asked = messages.flatMap(({ role }, at) => {
    const isAnswered = role === 'user' && messages[at + 1]?.role === 'assistant'
    return isAnswered ? [at] : []
  })
  return asked.map((at, turn) => {
    const next = messages.slice(at + 1)
    const end = next.findIndex(({ role }) => role === 'user')
    const stretch = end < 0 ? next : next.slice(0, end)
    const last = stretch.at(-1)
    const answer = last?.role === 'assistant' ? textOf(last.content) : ''
    return {
      id: asked.length === 1 ? id : `${id}#${turn + 1}`,
      messages: messages.slice(0, at + 1),
      tools,
      calls: callsIn(stretch),
      ...(answer !== '' && { answer }),
    }
  })
}

/** Calls with what came back; those that nothing came back for are left out. */
function callsIn(messages: readonly Message[]): RecordedTaskLine['calls'] {
  const open = new Map<string, { readonly name: string; readonly input: unknown }>()
  return messages.flatMap(message => {
    if (message.role === 'assistant') {
      for (const { id, function: call } of message.tool_calls ?? []) {
        open.set(id, { name: call.name, input: inputIn(call.arguments) })
      }
    }
    if (message.role !== 'tool') return []
    const call = open.get(message.tool_call_id)
    open.delete(message.tool_call_id)
    return call ? [{ ...call, output: textOf(message.content) }] : []
  })
}

/** The input of a call; a text that is no JSON stays one. */
function inputIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
