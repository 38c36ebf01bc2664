import { createHash } from 'node:crypto'
import { openWeights } from './open-weights.ts'

/** Numbers of each tensor that are looked at. */
const looked = 64

/** A short name of a model's weights, from the list of its tensors and some numbers of each. */
export function digestOf(path: string): string {
  using file = openWeights(path)
  const hash = createHash('sha256')
  for (const [name, { shape }] of [...file.tensors].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const count = shape.reduce((product, side) => product * side, 1)
    const numbers = new Float32Array(Math.min(looked, count))
    file.read(name, Math.floor((count - numbers.length) / 2), numbers)
    hash.update(`${name} ${shape.join()}`).update(new Uint8Array(numbers.buffer))
  }
  return hash.digest('hex').slice(0, 16)
}
