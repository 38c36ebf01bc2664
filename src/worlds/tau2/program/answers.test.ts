import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { PythonError, SourceError, UnsupportedError } from '@espalier/text/python'
import { expect, it } from 'vitest'
import { loadProgram } from './program.ts'
import { repr } from './show.ts'
import type { Value } from './values.ts'

interface Row {
  readonly expression: string
  readonly before?: string
  readonly answer?: string
  readonly error?: string
}

const table = 'packages/text/src/python/answers.jsonl.gz'
const rows = gunzipSync(readFileSync(table))
  .toString('utf8')
  .trimEnd()
  .split('\n')
  .map(line => JSON.parse(line) as Row)

/** What a program makes of an expression, the class of what it raises, or `undefined` if it says that it cannot. */
function answerOf({ expression, before = '' }: Row): string | undefined {
  const source = `${before}\nanswer = (${expression})\n`
  try {
    const program = loadProgram({
      source: name => (name === 'main' ? source : undefined),
      randomHex: () => '0'.repeat(32),
    })
    return repr(program.load('main').scope.get('answer') as Value)
  } catch (error) {
    if (error instanceof PythonError) return error.type
    if (error instanceof UnsupportedError || error instanceof SourceError) return undefined
    throw error
  }
}

it('programs answer as CPython 3.11 does, or say that they cannot', () => {
  const unsupported: string[] = []
  const wrong: string[] = []
  for (const row of rows) {
    const given = answerOf(row)
    if (given === undefined) unsupported.push(row.expression)
    else if (given !== (row.answer ?? row.error)) wrong.push(`${row.expression}: ${given}`)
  }
  expect(wrong).toEqual([])
  // complex numbers, characters by their names, and starred targets
  expect(unsupported.length).toBeLessThan(20)
})
