import type { ChatText } from './chat.ts'

/** The ranges that lie in the part of a text from `start` with this length, counted from `start`. */
export function shift(
  ranges: ChatText['foreign'],
  start: number,
  length = Number.POSITIVE_INFINITY,
): readonly (readonly [number, number])[] {
  return ranges
    .map(([from, end]) => [Math.max(0, from - start), Math.min(length, end - start)] as const)
    .filter(([from, end]) => end > from)
}
