import { textOf } from '@espalier/text'
import type { Conversation } from '../../run/demonstrations/conversation.ts'

/** How much demonstrations show. */
export interface Coverage {
  /** Different conversations that an assistant's turn stood at the end of. */
  readonly situations: number
  /** Different values in calls, tools included: what a model has to tell apart, and mostly to copy. */
  readonly values: number
  /** As many situations as make it likely that each value was seen often enough. */
  readonly wanted: number
}

/** How often a small model wants to see a value before it copies it from places it has not seen. */
const timesPerValue = 30

/** Counts what demonstrations show. */
export function coverageOf(conversations: readonly Conversation[]): Coverage {
  const situations = new Set<string>()
  const values = new Set<string>()
  for (const { messages } of conversations) {
    let before = ''
    for (const message of messages) {
      if (message.role === 'assistant') {
        situations.add(before)
        for (const { function: called } of message.tool_calls ?? []) {
          values.add(called.name)
          for (const { path, value } of namedLeavesOf(called.arguments))
            values.add(`${called.name} ${path}=${value}`)
          before += ` ${called.name} ${called.arguments}`
        }
      }
      before += `\n${message.role} ${textOf(message.content)}`
    }
  }
  const wanted = Math.ceil((timesPerValue * values.size) / 50) * 50
  return { situations: situations.size, values: values.size, wanted }
}

/** The plain values in a call's arguments. */
export function leavesOf(text: string): readonly string[] {
  return namedLeavesOf(text).map(({ value }) => value)
}

interface Leaf {
  /** The names that lead to it. */
  readonly path: string
  readonly value: string
}

function namedLeavesOf(text: string): readonly Leaf[] {
  try {
    return leaves(JSON.parse(text), '')
  } catch {
    return [{ path: '', value: text }]
  }
}

function leaves(value: unknown, path: string): readonly Leaf[] {
  if (typeof value !== 'object' || value === null) return [{ path, value: String(value) }]
  return Object.entries(value).flatMap(([key, each]) => leaves(each, `${path}.${key}`))
}
