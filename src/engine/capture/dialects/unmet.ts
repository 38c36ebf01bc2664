import type { ChatAnswer } from '../contract.ts'

/** A field of our own, beside the finish reason: what was asked for and the answer lacks. */
export function unmetField({ unmet }: ChatAnswer): object {
  return unmet.length === 0 ? {} : { unmet }
}
