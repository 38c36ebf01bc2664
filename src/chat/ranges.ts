import type { ChatText } from './chat.ts'

/** Ranges of a text in the part of it that begins at `start` and has this length. */
export function shift(
  ranges: ChatText['foreign'],
  start: number,
  length = Number.POSITIVE_INFINITY,
): readonly (readonly [number, number])[] {
  return ranges
    .map(([from, end]) => [Math.max(0, from - start), Math.min(length, end - start)] as const)
    .filter(([from, end]) => end > from)
}
