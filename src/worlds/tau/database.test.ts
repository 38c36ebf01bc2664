import type { PythonDict, PythonValue } from '@espalier/text/python'
import { dumps, parseJson } from '@espalier/text/python'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Database } from './database.ts'
import { intern } from './intern.ts'
import { type Row, Tables } from './tables.ts'

const source = `{"a": {"id": "a", "price": 1.0, "12": "x", "items": [{"n": 1}], "where": {"zip": "1"}},
  "b": {"id": "b", "price": 2, "items": [], "where": {}}}`

const tables = (): Tables =>
  new Tables(new Map([['rows', intern(parseJson(source)) as ReadonlyMap<string, Row>]]))

const change = fc.oneof(
  fc.record({ kind: fc.constant('set'), key: fc.constantFrom('id', 'price', 'new', '12') }),
  fc.record({ kind: fc.constant('delete'), key: fc.constantFrom('id', '12', 'where') }),
  fc.record({ kind: fc.constantFrom('append', 'nest', 'fork'), key: fc.constant('items') }),
)

describe('a database', () => {
  it('writes a changed row as Python would, whatever was changed, and leaves the others alone', () => {
    const steps = fc.array(fc.tuple(fc.constantFrom('a', 'b'), change, fc.string()))
    fc.assert(
      fc.property(steps, changes => {
        const shared = tables()
        const untouched = new Database(shared)
        let database = new Database(shared)
        for (const [id, { kind, key }, text] of changes) {
          if (kind === 'fork') database = database.fork()
          apply(database, id, { kind, key, value: text })
          const row = database.at('rows', id)
          expect(database.textOf(row)).toBe(dumps(row))
        }
        for (const [id, row] of parseJson(source) as PythonDict) {
          expect(untouched.textOf(untouched.at('rows', id as string))).toBe(dumps(row))
        }
      }),
      { seed: 9, numRuns: process.env.ESPALIER_SOAK ? 20_000 : 300 },
    )
  })
})

interface Change {
  readonly kind: string
  readonly key: string
  readonly value: PythonValue
}

function apply(database: Database, id: string, { kind, key, value }: Change): void {
  const row = database.change('rows', id)
  if (kind === 'delete') row.delete(key)
  else if (kind === 'append') database.listIn(row, 'items', 'append').push(value)
  else if (kind === 'nest' && row.has('where')) database.dictIn(row, 'where').set('more', value)
  else row.set(key, kind === 'set' ? value : [])
}

describe('interning', () => {
  it('changes nothing that can be seen', () => {
    const text = `{"__proto__": {"7": "x", "": null}, "long": "${'y'.repeat(99)}", "n": [1.0, true]}`
    expect(dumps(intern(parseJson(text)))).toBe(text)
  })
})
