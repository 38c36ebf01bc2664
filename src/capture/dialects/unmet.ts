import type { ChatAnswer } from '../contract.ts'

/** What was asked for and is not so: a field that no dialect has, beside why an answer ended. */
export function unmetField({ unmet }: ChatAnswer): object {
  return unmet.length === 0 ? {} : { unmet }
}
