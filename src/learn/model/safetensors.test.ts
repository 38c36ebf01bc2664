import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readSafetensors, writeSafetensors } from './safetensors.ts'
import type { Tensor } from './tensor.ts'

const runs = process.env.ESPALIER_SOAK ? 5000 : 200

const tensors = fc
  .uniqueArray(fc.tuple(fc.string({ minLength: 1 }), fc.array(fc.nat(4), { maxLength: 3 })), {
    selector: ([name]) => name,
    maxLength: 5,
  })
  .map(entries =>
    entries
      .filter(([name]) => name !== '__metadata__')
      .map(([name, shape], index): Tensor => {
        const count = shape.reduce((product, side) => product * side, 1)
        const data = Float32Array.from({ length: count }, (_, at) => Math.sin(index * 100 + at))
        return { name, shape, data }
      }),
  )

it('reads what it wrote', () => {
  fc.assert(
    fc.property(tensors, written => {
      const read = readSafetensors(writeSafetensors(written, { step: '3' }), 'file')
      // Object keys that look like numbers come first in JSON, so order is not part of the format.
      const sorted = (list: readonly Tensor[]) =>
        [...list].sort((a, b) => (a.name < b.name ? -1 : 1))
      expect(sorted(read)).toEqual(sorted(written))
    }),
    { seed: 1, numRuns: runs },
  )
})

it('refuses damaged files with an error that names them, and nothing worse', () => {
  const bytes = writeSafetensors([
    { name: 'a', shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) },
    { name: 'b', shape: [1], data: Float32Array.of(5) },
  ])
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.nat(255), fc.boolean(), (at, value, cut) => {
      const damaged = cut ? bytes.slice(0, at) : bytes.slice().fill(value, at, at + 1)
      try {
        readSafetensors(damaged, 'the file')
      } catch (error) {
        expect((error as Error).message).toContain('the file')
      }
    }),
    { seed: 1, numRuns: runs * 5 },
  )
})

it.each([
  [{ a: { dtype: 'F64', shape: [1], data_offsets: [0, 8] } }, 'the type F64; F32, F16, BF16 are'],
  [{ a: { dtype: 'F32', shape: [3], data_offsets: [0, 8] } }, '8 bytes for the shape [3]'],
  [{ a: { dtype: 'F32', shape: [-2], data_offsets: [0, 8] } }, 'no shape'],
  [{ a: { dtype: 'F32', shape: [2], data_offsets: [4, 12] } }, 'lies at [4, 12] of 8'],
  [{ a: { dtype: 'F32', shape: [1], data_offsets: [4, 8] } }, 'begins at 4, not at 0'],
  [{ a: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } }, '4 bytes that belong to no tensor'],
  [{ a: null }, 'the type undefined'],
  [[], 'not an object'],
])('refuses the header %j', (header, message) => {
  const head = new TextEncoder().encode(JSON.stringify(header))
  const bytes = new Uint8Array(8 + head.length + 8)
  bytes[0] = head.length
  bytes.set(head, 8)
  expect(() => readSafetensors(bytes, 'x')).toThrow(message)
})

it.each([Number.NaN, Number.POSITIVE_INFINITY])('H8: refuses weights of which one is %d', wrong => {
  const data = Float32Array.of(1, wrong, 2)
  const bytes = writeSafetensors([{ name: 'w', shape: [3], data }])
  expect(() => readSafetensors(bytes, 'model.safetensors')).toThrow('number 1 of w is')
})
