import { linearPattern } from '../../patterns/pattern.ts'
import { withinTime } from './within-time.ts'

/** Milliseconds after which a match that no engine can promise to end is given up. */
const deadline = 100

/** Characters of a text that is matched; one that is longer does not match. */
const longest = 1_000_000

/**
 * The engine for patterns of JSON schemas. Who writes a schema may write a pattern whose matching takes
 * time that doubles with every character, so they are matched in linear time. One that refers to what
 * it matched before cannot be: it has a deadline, and a text that takes longer does not match.
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
  // `ajv` takes patterns of one text for one pattern.
  return { test, toString: () => String(expression) }
}

/** What `ajv` would write into modules of its own, which are not made here. */
schemaPattern.code = 'schemaPattern'
