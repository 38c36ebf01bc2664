import { type Message, textOf } from '@espalier/text'
import type { CapturedTurn } from '../turn.ts'

/** Shorter texts may stand in a prompt by chance. */
const leastSummary = 12

/** The turn that was asked for a summary, and whose answer a conversation goes on from: its newest, if any. */
export function summaryIn(
  messages: readonly Message[],
  known: readonly CapturedTurn[],
): CapturedTurn | undefined {
  return known.findLast(turn => {
    if (!wasAsked(turn.messages)) return false
    const text = essence(textOf(turn.message.content ?? ''))
    return text.length >= leastSummary && holds(messages, text)
  })
}

function wasAsked(messages: readonly Message[]): boolean {
  const last = messages.findLast(({ role }) => role === 'user')
  return last !== undefined && /\bsummar/i.test(textOf(last.content))
}

/** What is handed on of a summary: what stands between its tags, if it has any. */
function essence(text: string): string {
  return (/<summary>([\s\S]*?)<\/summary>/.exec(text)?.[1] ?? text).trim()
}

const holds = (messages: readonly Message[], text: string): boolean =>
  messages.some(({ content }) => textOf(content ?? '').includes(text))
