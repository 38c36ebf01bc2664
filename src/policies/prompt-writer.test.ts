import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { idWidth } from './id-digits.ts'
import { openPromptWriter } from './prompt-writer.ts'

const frame = { head: '{"stop":"é","input_ids":[', tail: '],"end":"ü"}' }

function expected(ids: Int32Array): string {
  return `${frame.head}${Array.from(ids).join(',')}${frame.tail}`
}

describe('prompt writer', () => {
  it('writes every width of id', () => {
    const ids = Int32Array.of(
      ...[0, 9, 10, 99, 100, 999, 1000, 9999, 10_000, 99_999, 100_000, 999_999],
      ...[1_000_000, 9_999_999, 12_000_000, 123_000_045, 1_000_000_000, 2_147_483_647],
    )
    const written = openPromptWriter().write('a', ids, frame)
    expect(written.toString()).toBe(expected(ids))
    for (const id of ids) expect(idWidth(id)).toBe(String(id).length)
  })

  it('refuses what is not a token id', () => {
    expect(() => openPromptWriter().write('a', Int32Array.of(1, -2), frame)).toThrow(
      'Token 1 of the prompt is -2',
    )
  })

  it('[T3] writes what it was given whatever the sessions were before, also when it forgets', () => {
    const base = Int32Array.from({ length: 900 }, (_, index) => (index * 7919) % 152_000)
    const step = fc.record({
      session: fc.constantFrom('a', 'b', 'c'),
      keep: fc.integer({ min: 0, max: 900 }),
      more: fc.array(fc.integer({ min: 0, max: 2 ** 31 - 1 }), { maxLength: 900 }),
    })
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 12 }),
        fc.constantFrom(20_000, 2 ** 24),
        (steps, budget) => {
          const writer = openPromptWriter(budget)
          for (const { session, keep, more } of steps) {
            const ids = Int32Array.from([...base.subarray(0, keep), ...more])
            expect(writer.write(session, ids, frame).toString()).toBe(expected(ids))
          }
        },
      ),
      { seed: 7, numRuns: process.env.ESPALIER_SOAK ? 2000 : 60 },
    )
  })
})
