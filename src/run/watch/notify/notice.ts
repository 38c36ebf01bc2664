import { createHash } from 'node:crypto'
import { describeCause } from '../../../base/core/failure.ts'

/** What a notice is about. */
export type NoticeLevel = 'failure' | 'warning' | 'end'

/** Something that somebody should know. */
export interface Notice {
  readonly level: NoticeLevel
  readonly title: string
  readonly text: string
  /** Equal for the same problem, whatever numbers are in its text. */
  readonly fingerprint: string
  readonly run: string
  readonly time: string
  /** How often it happened since the last notice; 1 the first time. */
  readonly count: number
}

/** A notice without its time and count. */
export type Draft = Pick<Notice, 'level' | 'title' | 'text' | 'fingerprint'>

/** A short key for a problem that ignores numbers, ids and addresses in its text. */
export function fingerprintOf(...words: readonly string[]): string {
  const general = words.map(word => word.replace(/0x[\da-f]+|[\da-f]{8,}|\d+/gi, '#'))
  return createHash('sha256').update(general.join('\0')).digest('hex').slice(0, 12)
}

/** A notice of an exception: its message, and where it was thrown. */
export function noticeOfError(error: unknown, context: string): Draft {
  const message = describeCause(error)
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const place = deepestPlace(stack)
  return {
    level: 'failure',
    title: `${context} failed: ${firstLine(message)}`,
    text: [message, ...stack.split('\n').slice(1, 12)].join('\n'),
    fingerprint: fingerprintOf(context, message, place),
  }
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]!.slice(0, 120)
}

function deepestPlace(stack: string): string {
  return stack.split('\n').find(line => line.trimStart().startsWith('at ')) ?? ''
}
