import { createContext, Script } from 'node:vm'

/** Milliseconds after which a match of a pattern that came from elsewhere is given up. */
const deadline = 100

const script = new Script('expression.test(text)')

/**
 * The engine for patterns of JSON schemas. Who writes a schema may write a pattern whose matching takes
 * time that doubles with every character: one that repeats a group, or more than once, is matched under a
 * deadline, and a text that it cannot be matched against in time does not match.
 */
export function schemaPattern(pattern: string, flags: string): { test(text: string): boolean } {
  const expression = new RegExp(pattern, flags)
  if (isHarmless(pattern)) return expression
  let context: ReturnType<typeof createContext> | undefined
  return {
    test(text) {
      context ??= createContext({ expression, text })
      context.text = text
      try {
        return Boolean(script.runInContext(context, { timeout: deadline }))
      } catch {
        return false
      }
    },
  }
}

/** What `ajv` would write into modules of its own, which are not made here. */
schemaPattern.code = 'schemaPattern'

/** Whether a pattern repeats at most once, and no group: it can be matched in one way only. */
function isHarmless(pattern: string): boolean {
  const plain = pattern.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, 'x')
  const repetitions = plain.match(/[*+]|\{\d+,\}|\{\d*,?\d{2,}\}/g)?.length ?? 0
  return repetitions < 2 && !/\)[*+{]/.test(plain)
}
