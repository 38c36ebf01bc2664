import { type Message, textOf } from '@espalier/text'
import { leavesOf } from '../coverage.ts'

/** The share of attempts that passed a value to a tool which nothing before it had said. */
export interface Unread {
  readonly solved: number
  readonly failed: number
}

/** An attempt as far as it matters here. */
export interface Told {
  readonly isSolved: boolean
  readonly trajectory: { readonly messages: readonly Message[] }
}

/** Fewer attempts of a kind than this say nothing. */
const enough = 3

/** Says how often values of calls stood nowhere before; undefined if too few attempts were solved, or failed. */
export function unreadOf(attempts: readonly Told[]): Unread | undefined {
  const share = (isSolved: boolean): number | undefined => {
    const own = attempts.filter(each => each.isSolved === isSolved)
    if (own.length < enough) return undefined
    return own.filter(({ trajectory }) => passesUnread(trajectory.messages)).length / own.length
  }
  const [solved, failed] = [share(true), share(false)]
  return solved === undefined || failed === undefined ? undefined : { solved, failed }
}

/** Whether any call passes a value of which some word stood nowhere before. */
export function passesUnread(messages: readonly Message[]): boolean {
  const read = new Set<string>()
  for (const message of messages) {
    const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
    const values = calls.flatMap(({ function: { arguments: text } }) => leavesOf(text))
    if (values.some(value => wordsOf(value).some(word => !read.has(word)))) return true
    for (const word of wordsOf(textOf(message.content))) read.add(word)
  }
  return false
}

const wordsOf = (text: string): readonly string[] => text.match(/\p{L}+|\p{N}+/gu) ?? []
