import { linearPattern } from '@espalier/text/patterns'
import { withinTime } from './within-time.ts'

/** Milliseconds after which a match without a linear bound is given up. */
const deadline = 100

/** Most characters of a text; a longer one does not match. */
const longest = 1_000_000

/**
 * The engine for patterns of JSON schemas. An author may write a pattern whose matching time doubles
 * with every character, so patterns are matched in linear time. One with back-references cannot be:
 * it has a deadline, and a text that takes longer does not match.
 */
export function schemaPattern(
  pattern: string,
  flags: string,
): { test(text: string): boolean; toString(): string } {
  const expression = new RegExp(pattern, flags)
  const linear = linearPattern(expression)
  const test = linear
    ? (text: string) => text.length <= longest && linear.test(text)
    : (text: string) => withinTime(deadline, () => expression.test(text)) ?? false
  // `ajv` compares patterns by this text.
  return { test, toString: () => String(expression) }
}

/** `ajv` requires this for generated modules, which are not used here. */
schemaPattern.code = 'schemaPattern'
