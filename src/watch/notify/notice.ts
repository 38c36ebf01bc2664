import { createHash } from 'node:crypto'
import { describeCause } from '../../core/failure.ts'

/** What a notice is about. */
export type NoticeLevel = 'failure' | 'warning' | 'end'

/** Something that somebody should know. */
export interface Notice {
  readonly level: NoticeLevel
  readonly title: string
  readonly text: string
  /** The same for what is the same problem, whatever its numbers. */
  readonly fingerprint: string
  readonly run: string
  readonly time: string
  /** How often it happened since it was last told; 1 the first time. */
  readonly count: number
}

/** A notice before it is known when and how often. */
export type Draft = Pick<Notice, 'level' | 'title' | 'text' | 'fingerprint'>

/** A short name for a problem: numbers, ids and addresses in its words make no difference. */
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
