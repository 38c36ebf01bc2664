import { Matcher } from './matcher.ts'
import { parsePattern } from './parse.ts'
import { compilePart } from './program.ts'
import { isTame } from './syntax.ts'

/** A foreign regular expression, matched in linear time. */
export interface Pattern {
  /** Whether JavaScript's own engine matches it, because it is linear there. */
  readonly isNative: boolean
  /** Whether it matches anywhere in a text. */
  test(text: string): boolean
  /** Gives where each match in a text begins and ends, as `matchAll` finds them. */
  forEach(text: string, take: (start: number, end: number) => void): void
}

/**
 * Finds the same matches as the expression, in time linear in the text. Undefined if that cannot be
 * promised: it has back-references or rare syntax.
 */
export function linearPattern(expression: RegExp): Pattern | undefined {
  const part = parsePattern(expression)
  if (!part) return undefined
  if (isTame(part)) return nativePattern(expression)
  const program = compilePart(part)
  return {
    isNative: false,
    test: text => new Matcher(program, text).find(0) !== undefined,
    forEach(text, take) {
      const matcher = new Matcher(program, text)
      for (let from = 0; ; ) {
        const [start, end] = matcher.find(from) ?? []
        if (start === undefined || end === undefined) return
        take(start, end)
        from = start < end ? end : behind(text, end)
      }
    },
  }
}

/** An expression that is known to be harmless. */
export function nativePattern(expression: RegExp): Pattern {
  const all = new RegExp(expression.source, [...new Set([...expression.flags, 'g'])].join(''))
  const one = new RegExp(expression.source, expression.flags.replace(/[gy]/g, ''))
  return {
    isNative: true,
    test: text => one.test(text),
    forEach(text, take) {
      all.lastIndex = 0
      // Not matchAll, which copies the expression: there may be a million short texts.
      for (let found = all.exec(text); found !== null; found = all.exec(text)) {
        const end = found.index + found[0].length
        if (found[0] !== '') take(found.index, end)
        else {
          // V8 also finds nothing between the halves of a character, where nothing can stand.
          if ((text.codePointAt(end - 1) ?? 0) <= 0xffff) take(end, end)
          all.lastIndex = behind(text, end)
        }
      }
    },
  }
}

/** The place behind the character at a place. */
function behind(text: string, at: number): number {
  return at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)
}
