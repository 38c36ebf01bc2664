import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseBounded, readBounded, shapeOf } from './bounded.ts'

it('counts levels and values of JSON without parsing it', () => {
  expect(shapeOf('{"a":["\\"[[[",{}]}')).toEqual({ depth: 3, members: 5 })
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), value => {
      expect(shapeOf(JSON.stringify(value)).depth).toBe(levelsOf(value))
    }),
    { seed: 3 },
  )
})

function levelsOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(levelsOf))
}

it('H6: JSON of more values or levels than anything of ours has is not parsed; long texts are', () => {
  expect(() => parseBounded(`[${'{},'.repeat(600_000)}0]`)).toThrow('more than 1000000 values')
  expect(() => parseBounded('['.repeat(1_100_000))).toThrow('nested deeper than 128 levels')
  const text = 'x, {'.repeat(500_000)
  expect(parseBounded(JSON.stringify({ text }))).toEqual({ text })
  expect(parseBounded('[1,2]')).toEqual([1, 2])
})

it('H6: what is longer than it may be is not read to its end', async () => {
  let sent = 0
  async function* flood(): AsyncGenerator<Buffer> {
    for (;;) yield Buffer.alloc(10, ++sent)
  }
  await expect(readBounded(flood(), 95)).rejects.toThrow('more than 95 bytes')
  expect(sent).toBe(10)
  expect(await readBounded(null, 1)).toEqual(Buffer.of())
})
