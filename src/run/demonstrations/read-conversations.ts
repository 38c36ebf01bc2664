import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { type Message, type ToolDefinition, textOf } from '@espalier/text'
import type { Environment, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { type Fields, openFields, ReadError } from '../sinks/fields.ts'
import { readMessages } from '../sinks/readers/messages.ts'
import { readPrompt } from '../sinks/readers/spans.ts'
import type { Conversation } from './conversation.ts'

/** Where tools come from for conversations that do not list them. */
export interface Offering {
  readonly environment?: Environment | undefined
  /** Tasks that conversations may name by their ids. */
  readonly tasks: readonly Task[]
}

/**
 * Reads a file of conversations, one per line: `messages` as OpenAI or the AI SDK write them, with
 * `tools`, or with a `task` of the environment, or in an environment whose worlds all offer the
 * same. What cannot be taught from is refused with its line and the reason.
 */
export async function readConversations(
  path: string,
  offering: Offering,
): Promise<readonly Conversation[]> {
  const found: Conversation[] = []
  const toolsOf = makeTools(offering)
  let number = 0
  const input = createReadStream(path)
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    number++
    if (line.trim() === '') continue
    const record = openFields(parse(line, `${path}:${number}`), `${path}:${number}`)
    const messages = messagesOf(record)
    const tools = record.has('tools')
      ? (record.list('tools') as readonly ToolDefinition[])
      : await toolsOf(record)
    check(messages, tools, record.place)
    const { task } = record.value
    found.push({ messages, tools, ...(task !== undefined && { task: String(task) as TaskId }) })
  }
  if (found.length > 0) return found
  throw new ReadError(`${path} holds no conversation`)
}

function parse(line: string, place: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw new ReadError(`${place}: not JSON: ${(cause as Error).message}`, { cause })
  }
}

/** Parts that only messages of the AI SDK have. */
const ownParts = ['tool-call', 'tool-result', 'reasoning']

function messagesOf(record: Fields): readonly Message[] {
  if (!record.has('messages')) {
    throw new ReadError(
      `${record.place}: a demonstration has \`messages\`, one of them by the assistant`,
    )
  }
  const isOfSdk = record.each('messages').some(({ value: { content } }) => {
    const parts: readonly unknown[] = Array.isArray(content) ? content : []
    return parts.some(part => ownParts.includes((part as { type?: string } | null)?.type ?? ''))
  })
  if (!isOfSdk) return readMessages(record, 'messages')
  return record.each('messages').flatMap(({ value }) => readPrompt(value))
}

/** Refuses conversations that would teach nothing, or something that no rollout can contain. */
function check(
  messages: readonly Message[],
  tools: readonly ToolDefinition[],
  place: string,
): void {
  const known = new Set(tools.map(tool => tool.function.name))
  const refuse = (index: number, reason: string): never => {
    throw new ReadError(`${place}: message ${index + 1}: ${reason}`)
  }
  const first = messages.findIndex(({ role }) => role === 'assistant')
  if (first < 0) throw new ReadError(`${place}: no message is by the assistant`)
  if (first === 0) refuse(0, 'the assistant speaks first: there is nothing that it answers')
  messages.forEach((message, index) => {
    if (message.role !== 'assistant') return
    const calls = message.tool_calls ?? []
    if (calls.length === 0 && textOf(message.content).trim() === '') {
      refuse(index, 'the assistant says and calls nothing')
    }
    for (const { function: called } of calls) {
      if (!known.has(called.name)) {
        refuse(index, `it calls "${called.name}"; the tools are ${[...known].join(', ') || 'none'}`)
      }
      if (!isObject(called.arguments))
        refuse(index, `the arguments of ${called.name} are not a JSON object`)
    }
    const isAnswered = messages[index + 1]?.role !== 'assistant'
    if (!isAnswered)
      refuse(index + 1, 'two turns of the assistant follow each other: nothing answers the first')
  })
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

const lanes = makeLanes({ policy: 1, tools: 16, environment: 1, reward: 1 })

/** The tools of a line's task if it names one; otherwise those of the environment's first task. */
function makeTools({ environment, tasks }: Offering) {
  const byId = new Map(tasks.map(task => [String(task.id), task]))
  const known = new Map<string, readonly ToolDefinition[]>()
  return async (record: Fields): Promise<readonly ToolDefinition[]> => {
    if (!environment) {
      throw new ReadError(`${record.place}: it has no \`tools\`, and no --environment says them`)
    }
    const named = record.value.task ?? record.value.id
    const task = taskFor(record, { named, byId, environment, first: tasks[0] })
    const seen = known.get(task.id)
    if (seen) return seen
    const { signal } = new AbortController()
    await using world = await environment.open(task, { signal, seed: 0, lanes })
    known.set(task.id, world.tools)
    return world.tools
  }
}

interface Choice {
  readonly named: unknown
  readonly byId: ReadonlyMap<string, Task>
  readonly environment: Environment
  readonly first: Task | undefined
}

function taskFor({ value, place }: Fields, { named, byId, environment, first }: Choice): Task {
  const task = byId.get(String(named))
  if (task) return task
  if (value.task !== undefined && byId.size > 0) {
    throw new ReadError(`${place}: no task "${String(named)}" among the ${byId.size} of --tasks`)
  }
  const made = first ?? environment.makeTasks?.({ count: 1, seed: 0 })[0]
  if (made) return made
  try {
    return { id: 'shown' as TaskId, data: environment.readTask(value) }
  } catch {
    throw new ReadError(
      `${place}: it has no \`tools\`, and "${environment.name}" opens no world without a task: add \`tools\`, or name tasks with --tasks`,
    )
  }
}
