import { expect, it } from 'vitest'
import { CASELESS, kindTable, LOWER, MARK, NEWLINE, NUMBER, OTHER, SPACE, UPPER } from './kinds.ts'
import { pinned } from './unicode.ts'

it('has as many code points of each kind as the reference', () => {
  const counts = new Map<number, number>()
  for (const kind of kindTable()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  // Counted with the regular expressions of tokenizers 0.23 over all code points.
  expect(counts.get(UPPER)).toBe(1858 + 31)
  expect(counts.get(LOWER)).toBe(2258)
  expect(counts.get(CASELESS)).toBe(404 + 136_477)
  // The 240 variation selectors of plane 14 lie behind the table.
  expect(counts.get(MARK)).toBe(2501 - 240)
  expect(counts.get(NUMBER)).toBe(1911)
  expect(counts.get(SPACE)! + counts.get(NEWLINE)!).toBe(25)
})

it('has the kinds that the regular expressions of Node find', () => {
  const classes: readonly (readonly [string, number])[] = [
    ['[\\p{Lu}\\p{Lt}]', UPPER],
    // A glottal stop that Unicode 17 moved from lower case to caseless.
    ['[\\p{Ll}\\u0295]', LOWER],
    ['[[\\p{Lm}\\p{Lo}]--\\u0295]', CASELESS],
    ['\\p{M}', MARK],
    ['\\p{N}', NUMBER],
    ['[\\p{White_Space}--[\\r\\n]]', SPACE],
    ['[\\r\\n]', NEWLINE],
  ]
  const found = new Uint8Array(kindTable().length).fill(OTHER)
  for (let plane = 0; plane < found.length; plane += 0x10000) {
    const text = planeText(plane)
    const width = plane === 0 ? 1 : 2
    for (const [members, kind] of classes) {
      for (const match of text.matchAll(new RegExp(`${pinned(members)}+`, 'gv'))) {
        const start = plane + match.index / width
        found.fill(kind, start, start + match[0].length / width)
      }
    }
  }
  found.fill(0, 0xd800, 0xdc00)
  expect(Buffer.compare(found, kindTable())).toBe(0)
})

/** All 65,536 code points of a plane in order; lone surrogates hold the place of surrogates. */
function planeText(plane: number): string {
  const parts: string[] = []
  for (let start = plane; start < plane + 0x10000; start += 4096) {
    parts.push(String.fromCodePoint(...Array.from({ length: 4096 }, (_, index) => start + index)))
  }
  return parts.join('')
}
