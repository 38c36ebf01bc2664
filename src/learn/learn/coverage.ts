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
          for (const value of leavesOf(called.arguments)) values.add(`${called.name} ${value}`)
          before += ` ${called.name} ${called.arguments}`
        }
      }
      before += `\n${message.role} ${textOf(message.content)}`
    }
  }
  const wanted = Math.ceil((timesPerValue * values.size) / 50) * 50
  return { situations: situations.size, values: values.size, wanted }
}

/** The plain values in a call's arguments, each with the names that lead to it. */
function leavesOf(text: string): readonly string[] {
  try {
    return leaves(JSON.parse(text), '')
  } catch {
    return [text]
  }
}

function leaves(value: unknown, path: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return [`${path}=${String(value)}`]
  return Object.entries(value).flatMap(([key, each]) => leaves(each, `${path}.${key}`))
}
