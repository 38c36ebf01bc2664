import type { Pattern } from '../../patterns/pattern.ts'
import { replaceEach } from '../patterns.ts'

/** A text, and which of its UTF-16 units are foreign; without `foreign`, none is. */
export interface Marked {
  readonly text: string
  readonly foreign?: Uint8Array | undefined
}

/** Rewrites a text before it is cut. What is made of foreign characters is foreign. */
export type Normalizer = (input: Marked) => Marked

/** Rewrites each match; what is new in it is foreign if any of what it replaces was. */
export function rewriteEach(
  pattern: Pick<Pattern, 'forEach'>,
  rewrite: (found: string) => string,
): Normalizer {
  return ({ text, foreign }) => {
    if (foreign === undefined) return { text: replaceEach(text, pattern, rewrite) }
    const parts: string[] = []
    const marks: Uint8Array[] = []
    let last = 0
    pattern.forEach(text, (start, end) => {
      const found = text.slice(start, end)
      const rewritten = rewrite(found)
      parts.push(text.slice(last, start), rewritten)
      marks.push(
        foreign.subarray(last, start),
        moved(found, rewritten, foreign.subarray(start, end)),
      )
      last = end
    })
    parts.push(text.slice(last))
    marks.push(foreign.subarray(last))
    return { text: parts.join(''), foreign: concatenate(marks) }
  }
}

/** The marks of a rewritten match: as before while the two agree, then all alike. */
function moved(found: string, rewritten: string, foreign: Uint8Array): Uint8Array {
  let same = 0
  while (same < found.length && found[same] === rewritten[same]) same++
  const marks = new Uint8Array(rewritten.length)
  marks.set(foreign.subarray(0, Math.min(same, rewritten.length)))
  return marks.fill(foreign.includes(1, same) ? 1 : 0, same)
}

function concatenate(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
