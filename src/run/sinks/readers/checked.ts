import type { Message, ToolDefinition } from '@espalier/text'
import { boundaries } from '../../../base/core/failure.ts'
import type { Outcome } from '../../../base/core/outcome.ts'
import type { Fidelity } from '../../../base/core/trajectory.ts'
import { type Fields, ReadError } from '../fields.ts'

const roles = ['system', 'developer', 'user', 'assistant', 'tool'] as const

/** Messages in OpenAI's schema, as they are; a reply that only calls may leave out its content. */
export function messagesIn(record: Fields, name: string): readonly Message[] {
  return record.each(name).map(checkedMessage)
}

/** One of them. */
export function checkedMessage(message: Fields): Message {
  checkMessage(message)
  const { content = null, ...rest } = message.value
  return (content === null ? { ...rest, content } : message.value) as unknown as Message
}

function checkMessage(message: Fields): void {
  const role = wordIn(message, 'role', roles)
  const isSilent = role === 'assistant' && !message.has('content')
  if (Array.isArray(message.value.content)) message.each('content').forEach(checkPart)
  else if (!isSilent) message.text('content')
  if (message.has('reasoning_content')) message.text('reasoning_content')
  if (message.has('tool_call_id')) message.text('tool_call_id')
  for (const call of message.has('tool_calls') ? message.each('tool_calls') : []) {
    call.text('id')
    call.inner('function').text('name')
    call.inner('function').text('arguments')
  }
}

function checkPart(part: Fields): void {
  if (part.text('type') === 'text') part.text('text')
}

/** Tools in OpenAI's schema, as they are. */
export function toolsIn(record: Fields, name: string): readonly ToolDefinition[] {
  for (const tool of record.each(name)) {
    const called = tool.inner('function')
    called.text('name')
    if (called.has('parameters')) called.inner('parameters')
  }
  return record.list(name) as readonly ToolDefinition[]
}

/** An object of numbers; those that are null are left out. */
export function numbersIn(record: Fields, name: string): Readonly<Record<string, number>> {
  const found = record.inner(name)
  const known = Object.keys(found.value).filter(each => found.has(each))
  return Object.fromEntries(known.map(each => [each, found.number(each)]))
}

/** How a trajectory ended. */
export function outcomeIn(record: Fields, name: string): Outcome {
  const outcome = record.inner(name)
  const kind = wordIn(outcome, 'kind', ['completed', 'truncated', 'aborted', 'failed'])
  if (kind === 'truncated') outcome.text('limit')
  if (kind === 'aborted') outcome.text('by')
  if (kind === 'failed') {
    wordIn(outcome, 'boundary', boundaries)
    outcome.text('message')
  }
  return outcome.value as unknown as Outcome
}

/** Whether tokens are as they were sampled. */
export function fidelityIn(record: Fields, name: string): Fidelity {
  const fidelity = record.inner(name)
  wordIn(fidelity, 'kind', ['exact', 'forked', 're-encoded'])
  for (const fork of fidelity.each('forks')) {
    fork.number('at')
    fork.text('reason')
  }
  return fidelity.value as unknown as Fidelity
}

/** One of some words. */
export function wordIn<Word extends string>(
  record: Fields,
  name: string,
  words: readonly Word[],
): Word {
  const found = record.text(name)
  const word = words.find(each => each === found)
  if (word !== undefined) return word
  throw new ReadError(`${record.place}: no ${name} called "${found}". Known: ${words.join(', ')}`)
}
