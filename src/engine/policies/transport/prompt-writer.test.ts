import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { idWidth } from './id-digits.ts'
import { makePromptWriter } from './prompt-writer.ts'

const frame = { head: '{"input_ids":[', tail: '],"end":"ü",', rest: Buffer.from('"same":"é"}') }

function expected(ids: Int32Array): string {
  return `${frame.head}${Array.from(ids).join(',')}${frame.tail}${frame.rest}`
}

describe('prompt writer', () => {
  it('writes every width of id', () => {
    const ids = Int32Array.of(
      ...[0, 9, 10, 99, 100, 999, 1000, 9999, 10_000, 99_999, 100_000, 999_999],
      ...[1_000_000, 9_999_999, 12_000_000, 123_000_045, 1_000_000_000, 2_147_483_647],
    )
    const { bytes } = makePromptWriter().write('a', ids, frame)
    expect(bytes.toString()).toBe(expected(ids))
    for (const id of ids) expect(idWidth(id)).toBe(String(id).length)
  })

  it('refuses what is not a token id', () => {
    expect(() => makePromptWriter().write('a', Int32Array.of(1, -2), frame)).toThrow(
      'Token 1 of the prompt is -2',
    )
  })

  it('leaves a body alone while it is under way', () => {
    const writer = makePromptWriter()
    const [first, second] = [Int32Array.of(1, 2, 3), Int32Array.of(1, 2, 4, 5)]
    const sent = writer.write('a', first, frame)
    const other = writer.write('a', second, frame)
    expect(sent.bytes.toString()).toBe(expected(first))
    sent.keep()
    expect(other.bytes.toString()).toBe(expected(second))
    expect(writer.write('a', second, frame).bytes.toString()).toBe(expected(second))
    expect(other.bytes.toString()).toBe(expected(second))
  })

  it('copies ids that may be overwritten, and keeps those that last', () => {
    for (const lasts of [false, true]) {
      const writer = makePromptWriter()
      const memory = Int32Array.of(1, 2, 3, 4, 5, 6)
      writer.write('a', memory.subarray(0, 3), frame, lasts).keep()
      if (!lasts) memory[1] = 70
      expect(writer.write('a', memory, frame, lasts).bytes.toString()).toBe(expected(memory))
    }
  })

  it('refuses a head that it has no room for', () => {
    const long = { head: `{"${'long'.repeat(9)}":[`, tail: ']}' }
    expect(() => makePromptWriter().write('a', Int32Array.of(1), long)).toThrow('longer than 32')
  })

  it('[T3] writes what it was given whatever the paths were before, also when it forgets', () => {
    const base = Int32Array.from({ length: 900 }, (_, index) => (index * 7919) % 152_000)
    const step = fc.record({
      path: fc.constantFrom('a', 'b', 'c'),
      keep: fc.integer({ min: 0, max: 900 }),
      more: fc.array(fc.integer({ min: 0, max: 2 ** 31 - 1 }), { maxLength: 900 }),
      isKept: fc.boolean(),
    })
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 12 }),
        fc.constantFrom(20_000, 2 ** 24),
        (steps, budget) => {
          const writer = makePromptWriter(budget)
          for (const { path, keep, more, isKept } of steps) {
            const ids = Int32Array.from([...base.subarray(0, keep), ...more])
            const body = writer.write(path, ids, frame)
            expect(body.bytes.toString()).toBe(expected(ids))
            if (isKept) body.keep()
          }
        },
      ),
      { seed: 7, numRuns: process.env.ESPALIER_SOAK ? 2000 : 60 },
    )
  })
})
