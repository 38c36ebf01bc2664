import { inspect } from 'node:util'
import type { Message } from '@espalier/text'
import type { Transition } from '../../../base/core/environment.ts'
import { Failure } from '../../../base/core/failure.ts'
import type { CallRecord } from '../../../base/core/tool.ts'

/** Characters that a world may say at one time: more than any context holds. */
const mostCharacters = 2 ** 24

/** The roles that a message may have; templates leave out what has another. */
const roles: readonly unknown[] = [
  'system',
  'developer',
  'user',
  'assistant',
  'tool',
] satisfies readonly Message['role'][]

/** Throws if a world says too much, or something that is not a message: not the policy's fault. */
export function checkSaid(messages: readonly Message[]): void {
  if (!Array.isArray(messages)) throw broken(`said what is no list of messages: ${shown(messages)}`)
  let characters = 0
  for (const message of messages as readonly Message[]) {
    const { role, content } = message ?? {}
    // Only the assistant may say nothing but calls.
    const length = content === null && role !== 'assistant' ? undefined : lengthOf(content)
    if (typeof role !== 'string' || length === undefined || !hasCalls(message)) {
      throw broken(`said what is no message: ${shown(message)}`)
    }
    if (!roles.includes(role)) {
      throw broken(`said something as ${shown(role)}; the roles are ${roles.join(', ')}`)
    }
    characters += length
  }
  if (characters <= mostCharacters) return
  throw broken(`said ${characters} characters at one time; ${mostCharacters} are read`)
}

/** Throws if a world's answer to a step is not a valid transition. */
export function checkTransition(transition: Transition): void {
  const { observed = [], calls, reward, anchor, kind } = transition ?? {}
  if (kind !== 'continue' && kind !== 'end') {
    throw broken(`answered with what neither continues nor ends: ${shown(transition)}`)
  }
  checkSaid(observed)
  if (kind === 'continue' && observed.length === 0) throw broken('goes on without saying anything')
  if (calls !== undefined) checkCalls(calls)
  if (anchor !== undefined && typeof anchor !== 'string') {
    throw broken(`gave an anchor that is no text: ${shown(anchor)}`)
  }
  const limit: unknown = transition.kind === 'end' ? transition.limit : undefined
  if (limit !== undefined && limit !== 'misses' && limit !== 'tool-calls') {
    throw broken(`ended by ${shown(limit)}; the limits of a world are misses and tool-calls`)
  }
  if (reward === undefined || Number.isFinite(reward)) return
  throw broken(`rewarded a step with ${String(reward)}, which is no number`)
}

/** How much a content says; nothing if it is none. */
function lengthOf(content: unknown): number | undefined {
  if (typeof content === 'string') return content.length
  if (content === null) return 0
  if (!Array.isArray(content)) return undefined
  let characters = 0
  for (const part of content as readonly (Partial<Record<string, unknown>> | null)[]) {
    if (typeof part?.type !== 'string') return undefined
    if (part.type !== 'text') continue
    if (typeof part.text !== 'string') return undefined
    characters += part.text.length
  }
  return characters
}

/** Whether the calls of a message, if it has some, are calls. */
function hasCalls(message: Message): boolean {
  const calls = message.role === 'assistant' ? message.tool_calls : undefined
  if (calls === undefined || calls === null) return true
  return Array.isArray(calls) && calls.every(call => typeof call?.function?.name === 'string')
}

function checkCalls(calls: readonly CallRecord[]): void {
  if (!Array.isArray(calls)) throw broken(`gave what is no list of calls: ${shown(calls)}`)
  for (const call of calls as readonly CallRecord[]) {
    const { tool, output, seconds } = call ?? {}
    if (typeof tool === 'string' && typeof output === 'string' && Number.isFinite(seconds)) continue
    throw broken(`gave what is no record of a call: ${shown(call)}`)
  }
}

function broken(what: string): Failure {
  return new Failure('environment', { cause: new Error(`The world ${what}.`) })
}

/** Never throws, whatever was given: not for a circle, nor for an integer that JSON lacks. */
function shown(value: unknown): string {
  return inspect(value, { depth: 3, breakLength: Number.POSITIVE_INFINITY }).slice(0, 200)
}
