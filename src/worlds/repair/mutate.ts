import { isDeepStrictEqual } from 'node:util'
import { runInNewContext } from 'node:vm'
import type { Program } from './programs.ts'

/** A program with one thing changed, so that it is wrong. */
export interface Mutant {
  readonly program: Program
  /** Its number among the mutants of its program. */
  readonly number: number
  readonly source: string
  /** What mends it: a text that stands once in the broken source, and what has to stand there. */
  readonly fix: { readonly find: string; readonly replace: string }
}

/** Pairs that people confuse; each is replaced by the other. */
const confusions: readonly (readonly [string, string])[] = [
  ['<', '<='],
  ['>', '>='],
  ['===', '!=='],
  ['&&', '||'],
  ['+', '-'],
  ['*', '+'],
  ['/', '*'],
  ['0', '1'],
  ['true', 'false'],
  ['low', 'high'],
]

/** A word of a program: an operator, a number, a name. */
const words = /[<>=!]=+|&&|\|\||\+\+|[A-Za-z]\w*|\d+|[<>+\-*/]/g

/** The mutants of a program that fail at least one shown case and terminate on all cases. */
export function mutantsOf(program: Program): readonly Mutant[] {
  const found: Mutant[] = []
  for (const { index, 0: word } of program.source.matchAll(words)) {
    for (const other of otherWords(word)) {
      const source =
        program.source.slice(0, index) + other + program.source.slice(index + word.length)
      if (isBroken(program, source)) {
        found.push({ program, number: found.length, source, fix: fixOf(program.source, source) })
      }
    }
  }
  return found
}

function otherWords(word: string): readonly string[] {
  return confusions.flatMap(([one, other]) =>
    word === one ? [other] : word === other ? [one] : [],
  )
}

/** The line that was changed, as it is and as it should be. */
function fixOf(right: string, wrong: string): Mutant['fix'] {
  const lines = right.split('\n')
  const line = wrong.split('\n').findIndex((each, index) => each !== lines[index])
  return { find: wrong.split('\n')[line]!, replace: lines[line]! }
}

/** How many of a program's cases are shown to whoever repairs it. */
export function shownCases({ cases }: Program): Program['cases'] {
  return cases.slice(0, Math.ceil(cases.length / 2))
}

function isBroken(program: Program, source: string): boolean {
  const passes = (cases: Program['cases']): boolean[] =>
    cases.map(({ given, gives }) => isDeepStrictEqual(resultOf(source, given), gives))
  try {
    passes(program.cases)
    return passes(shownCases(program)).includes(false)
  } catch {
    // It throws or does not terminate: too obvious, or too slow to run.
    return false
  }
}

/** Most milliseconds that a mutant may take for one case. */
const patience = 100

function resultOf(source: string, given: readonly unknown[]): unknown {
  const expression = source.replace('export default ', '').trimEnd()
  const text = `JSON.stringify((${expression})(...${JSON.stringify(given)}))`
  const result: unknown = runInNewContext(text, {}, { timeout: patience })
  return result === undefined ? undefined : JSON.parse(String(result))
}
