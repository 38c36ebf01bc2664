import { checkTensors, frozenPlaces } from '../engine/frozen.ts'
import { fixedOffsets } from '../engine/plan.ts'
import { openWeights } from '../pretrained/open-weights.ts'
import type { ModelShape } from '../shape.ts'
import type { WeightsFile } from '../weights-file.ts'
import type { Card } from './card.ts'

/** Rows of a weight: of some outputs, from `first` on. */
export interface Slice {
  readonly buffer: GPUBuffer
  readonly first: number
  readonly rows: number
}

/** The weights of a pretrained model on a card: outputs × inputs, as folders have them, in as many arrays as it takes. */
export interface CardWeights {
  /** Whether two numbers share a word: then they are bfloat16, as they lie in the file. */
  readonly halves: boolean
  readonly maps: ReadonlyMap<string, readonly Slice[]>
  readonly head: readonly Slice[]
  readonly embedding: readonly Slice[]
  /** Norms and biases. */
  readonly fixed: GPUBuffer
}

/** Rows that are read at a time. */
const rowsAtOnce = 1024

/** Reads a model's weights to a card. */
export function loadWeights(
  card: Card,
  path: string,
  { shape, largest }: { readonly shape: ModelShape; readonly largest: number },
): CardWeights {
  using file = openWeights(path)
  const halves = checkTensors(file, shape) === 'bf16'
  const { maps, vectors, embedding } = frozenPlaces(shape)
  const fixed = new Float32Array(fixedOffsets(shape).total)
  for (const { name, size, offset, added } of vectors) {
    const numbers = fixed.subarray(offset, offset + size)
    file.read(name, 0, numbers)
    if (added !== 0) numbers.set(numbers.map(value => value + added))
  }
  const fixedBuffer = card.take(fixed.byteLength, 'norms')
  card.write(fixedBuffer, fixed)
  const places = new Map(
    maps.map(({ name }) => [name, loadRows(card, file, { name, halves, largest })] as const),
  )
  const head = places.get(maps.at(-1)!.name)!
  return {
    halves,
    maps: places,
    head,
    embedding:
      embedding === undefined ? head : loadRows(card, file, { name: embedding, halves, largest }),
    fixed: fixedBuffer,
  }
}

function loadRows(
  card: Card,
  file: WeightsFile,
  of: { readonly name: string; readonly halves: boolean; readonly largest: number },
): readonly Slice[] {
  const { name, halves, largest } = of
  const [rows, width] = file.tensors.get(name)!.shape as readonly [number, number]
  const rowBytes = width * (halves ? 2 : 4)
  const most = Math.floor(largest / rowBytes)
  const slices: Slice[] = []
  for (let first = 0; first < rows; first += most) {
    const some = Math.min(most, rows - first)
    slices.push({ buffer: card.take(some * rowBytes, name), first, rows: some })
  }
  for (const { buffer, first, rows: some } of slices) {
    for (let row = 0; row < some; row += rowsAtOnce) {
      const count = Math.min(rowsAtOnce, some - row) * width
      const target = halves ? new Uint16Array(count) : new Float32Array(count)
      const place = (first + row) * width
      if (target instanceof Uint16Array) file.readHalves(name, place, target)
      else file.read(name, place, target)
      card.write(buffer, target, row * rowBytes)
    }
  }
  return slices
}
