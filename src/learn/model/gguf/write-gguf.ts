import { bytesOf, q8Block } from '../exported/numbers.ts'
import type { ExportedModel } from '../exported/open-exported.ts'
import { countOf, tensorPieces } from '../exported/write-folder.ts'
import type { WeightsFile } from '../weights-file.ts'
import { architectureOf, modelFacts, positionFactors } from './model-facts.ts'
import { layerNames, otherNames } from './names.ts'
import { tokenizerFacts } from './tokenizer-facts.ts'

/** Types of numbers that a GGUF file may have, by their number in the format; whole floats stay beside all of them. */
export const ggufTypes = { f32: 0, f16: 1, q8_0: 8 } as const

export type GgufType = keyof typeof ggufTypes

/** Types of facts in a GGUF file, by their number in the format. */
const factTypes = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const

/** A fact of a GGUF file. */
export type Fact = readonly [
  key: string,
  type: 'u32' | 'f32' | 'bool' | 'string' | 'strings' | 'integers',
  value: unknown,
]

/** Where each tensor begins: at a multiple of so many bytes. */
const alignment = 32

/** A tensor as it lies in the file. */
interface Stored {
  readonly name: string
  readonly shape: readonly number[]
  readonly type: GgufType
  readonly pieces: () => Iterable<Uint8Array>
}

/** A model as a GGUF file, which llama.cpp and Ollama run, piece by piece. */
export function* ggufOf(model: ExportedModel, type: GgufType): Iterable<Uint8Array> {
  const stored = storedOf(model, type)
  const facts: readonly Fact[] = [
    ...modelFacts(model),
    ['general.alignment', 'u32', alignment],
    ['general.file_type', 'u32', { f32: 0, f16: 1, q8_0: 7 }[type]],
    ...tokenizerFacts(model.files, model.shape.vocabulary),
  ]
  const head = Buffer.concat([...header(facts, stored)])
  yield Buffer.concat([head, padding(head.length)])
  for (const tensor of stored) {
    yield* tensor.pieces()
    yield padding(bytesOf(countOf(tensor.shape), tensor.type))
  }
}

function padding(length: number): Buffer {
  return Buffer.alloc((alignment - (length % alignment)) % alignment)
}

function* header(facts: readonly Fact[], stored: readonly Stored[]): Iterable<Buffer> {
  yield Buffer.from('GGUF')
  yield u32(3)
  yield u64(stored.length)
  yield u64(facts.length)
  for (const fact of facts) yield* factBytes(fact)
  let offset = 0
  for (const { name, shape, type } of stored) {
    yield text(name)
    yield u32(shape.length)
    for (const side of [...shape].reverse()) yield u64(side)
    yield u32(ggufTypes[type])
    yield u64(offset)
    offset += Math.ceil(bytesOf(countOf(shape), type) / alignment) * alignment
  }
}

function storedOf({ shape, weights, config }: ExportedModel, type: GgufType): readonly Stored[] {
  const isTurned = architectureOf(config) === 'llama'
  const { headSize } = shape.family!
  const tied = shape.family!.isTied ? 'lm_head.weight' : undefined
  const names = [...weights.tensors.keys()].filter(
    name => name !== tied && !name.endsWith('inv_freq'),
  )
  const stored = names.map((name): Stored => {
    const { shape: sizes } = weights.tensors.get(name)!
    const file =
      isTurned && /\.self_attn\.[qk]_proj\./.test(name) ? turned(weights, headSize) : weights
    const own = typeOf(sizes, type)
    const pieces = () => tensorPieces(file, name, own)
    return { name: storedName(name), shape: sizes, type: own, pieces }
  })
  const factors = positionFactors({ shape, config })
  if (!factors) return stored
  const pieces = () => [new Uint8Array(factors.buffer)]
  return [{ name: 'rope_freqs.weight', shape: [factors.length], type: 'f32', pieces }, ...stored]
}

/** Norms and biases stay whole; rows without whole blocks become halves. */
function typeOf(shape: readonly number[], wanted: GgufType): GgufType {
  if (shape.length === 1) return 'f32'
  return wanted === 'q8_0' && shape.at(-1)! % q8Block.numbers !== 0 ? 'f16' : wanted
}

/** The names of the file's tensors by those of a folder. */
const storedNames: ReadonlyMap<string, string> = new Map(
  Object.entries(layerNames).map(([stored, name]) => [name, stored]),
)

function storedName(name: string): string {
  const whole = Object.entries(otherNames).find(([, folder]) => folder === name)?.[0]
  if (whole !== undefined) return whole
  const [, layer, part, kind] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(name) ?? []
  const stored = part === undefined ? undefined : storedNames.get(part)
  if (stored === undefined) throw new Error(`The tensor ${name} has no name in a GGUF file.`)
  return `blk.${layer}.${stored}.${kind}`
}

/** Hugging Face rotates the halves of a head, GGUF's llama rotates neighbours: rows change places. */
function turned(weights: WeightsFile, size: number): WeightsFile {
  return {
    ...weights,
    read(name, from, target) {
      const { shape } = weights.tensors.get(name)!
      const width = shape.length === 1 ? 1 : shape.at(-1)!
      for (let done = 0; done < target.length; done += width) {
        const row = (from + done) / width
        const within = row % size
        const old = row - within + (within >> 1) + (within % 2) * (size / 2)
        weights.read(name, old * width, target.subarray(done, done + width))
      }
    },
  }
}

function u32(value: number): Buffer {
  const piece = Buffer.alloc(4)
  piece.writeUInt32LE(value)
  return piece
}

function u64(value: number): Buffer {
  const piece = Buffer.alloc(8)
  piece.writeBigUInt64LE(BigInt(value))
  return piece
}

function f32(value: number): Buffer {
  const piece = Buffer.alloc(4)
  piece.writeFloatLE(value)
  return piece
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'utf8')
  return Buffer.concat([u64(bytes.length), bytes])
}

function* factBytes([key, type, value]: Fact): Iterable<Buffer> {
  yield text(key)
  if (type === 'strings' || type === 'integers') {
    const list = value as readonly (string | number)[]
    yield u32(factTypes.array)
    yield u32(type === 'strings' ? factTypes.string : factTypes.i32)
    yield u64(list.length)
    for (const each of list) yield typeof each === 'string' ? text(each) : u32(each)
    return
  }
  yield u32(factTypes[type])
  if (type === 'string') yield text(value as string)
  else if (type === 'bool') yield Buffer.of(Number(value))
  else yield type === 'f32' ? f32(value as number) : u32(value as number)
}
