import { closeSync, openSync, readSync } from 'node:fs'
import {
  type GgufHeader,
  ggufModelFiles,
  readGgufHeader,
  type StoredTensor,
} from '@espalier/text/gguf'
import { toHalf } from '../exported/numbers.ts'
import type { TensorFacts, WeightsFile } from '../weights-file.ts'
import { type BlockType, blockTypes, otherTypes } from './blocks.ts'
import { type GgufConfig, ggufConfig } from './config.ts'
import { layerNames, otherNames } from './names.ts'

/** A model in a GGUF file, as a Hugging Face folder would have it. */
export interface GgufModel extends Disposable {
  readonly config: GgufConfig
  readonly weights: WeightsFile
  /** Tokenizer and template files that the file stands for. */
  files(): ReadonlyMap<string, string>
}

/** Opens a GGUF file; what cannot be exact is refused by name. */
export function openGguf(path: string): GgufModel {
  const header = readGgufHeader(path)
  const config = ggufConfig(header, readFactors(header))
  const weights = openWeights(header, config)
  return {
    config,
    weights,
    files: () => ggufModelFiles(header),
    [Symbol.dispose]: () => weights[Symbol.dispose](),
  }
}

/** The name of the tensor that scales positions, which no folder has. */
const factorsName = 'rope_freqs.weight'

function readFactors(header: GgufHeader): Float32Array | undefined {
  const stored = header.tensors.find(({ name }) => name === factorsName)
  if (!stored) return undefined
  const tensor = check(header, stored, undefined)
  const factors = new Float32Array(tensor.shape.reduce((product, side) => product * side, 1))
  const { path } = header
  const file = openSync(path, 'r')
  try {
    readStored({ path, file }, tensor, 0, factors)
    return factors
  } finally {
    closeSync(file)
  }
}

/** A tensor of the file, under its name in a folder. */
interface Found extends TensorFacts {
  readonly stored: StoredTensor
  readonly block: BlockType
  /** Rows of a head, if the file has them in another order. */
  readonly turned: number | undefined
}

function openWeights(header: GgufHeader, config: GgufConfig): WeightsFile {
  const { path } = header
  const found = new Map<string, Found>()
  for (const stored of header.tensors) {
    const name = nameOf(stored.name)
    if (name === undefined) {
      if (stored.name === factorsName) continue
      throw new Error(
        `${path} has the tensor ${stored.name}, which no dense transformer read here has.`,
      )
    }
    if (found.has(name)) throw new Error(`${path} has the tensor ${stored.name} twice.`)
    found.set(name, check(header, stored, turnedOf(name, config)))
  }
  const file = openSync(path, 'r')
  const findTensor = (name: string): Found => {
    const tensor = found.get(name)
    if (!tensor) throw new Error(`${path} has no tensor for ${name}.`)
    return tensor
  }
  return {
    source: path,
    tensors: found,
    read(name, from, target) {
      readRows(findTensor(name), from, target, (tensor, at, piece) =>
        readStored({ path, file }, tensor, at, piece),
      )
      const wrong = target.findIndex(value => !Number.isFinite(value))
      if (wrong < 0) return
      throw new Error(`${path} is damaged: number ${from + wrong} of ${name} is ${target[wrong]}.`)
    },
    readHalves(name, from, target) {
      const tensor = findTensor(name)
      if (tensor.type === 'f32') throw new Error(`${name} of ${path} has no halves.`)
      const floats = new Float32Array(target.length)
      this.read(name, from, floats)
      narrow(floats, tensor.type, target)
    },
    [Symbol.dispose]: () => closeSync(file),
  }
}

/** Exact halves, from floats that were halves. */
function narrow(floats: Float32Array, type: 'f16' | 'bf16', target: Uint16Array): void {
  const words = new Uint32Array(floats.buffer)
  for (let at = 0; at < target.length; at++) {
    target[at] = type === 'bf16' ? words[at]! >>> 16 : toHalf(words[at]!)
  }
}

function check(
  { path, size }: GgufHeader,
  stored: StoredTensor,
  turned: number | undefined,
): Found {
  const { name, shape, type, start } = stored
  const block = blockTypes.get(type)
  if (!block) {
    const known = [...blockTypes.values()].map(each => each.name).join(', ')
    throw new Error(
      `${path}: the tensor ${name} has the type ${otherTypes[type] ?? type}; ${known} are read.`,
    )
  }
  const count = shape.reduce((product, side) => product * side, 1)
  if (shape.at(-1)! % block.numbers !== 0) {
    throw new Error(
      `${path}: a row of ${name}, ${shape.at(-1)} numbers, has no whole blocks of ${block.numbers}.`,
    )
  }
  if (start + (count / block.numbers) * block.bytes > size) {
    throw new Error(`${path} ends before the tensor ${name} does: it is cut off.`)
  }
  return { stored, block, turned, shape, type: block.type }
}

type Read = (tensor: Found, from: number, piece: Float32Array) => void

/** Reads numbers in the order of a folder: of turned tensors row by row. */
function readRows(tensor: Found, from: number, target: Float32Array, read: Read): void {
  const { turned, shape } = tensor
  if (turned === undefined) {
    read(tensor, from, target)
    return
  }
  const width = shape.length === 1 ? 1 : shape.at(-1)!
  for (let done = 0; done < target.length; ) {
    const row = Math.floor((from + done) / width)
    const within = from + done - row * width
    const count = Math.min(width - within, target.length - done)
    read(tensor, storedRow(row, turned) * width + within, target.subarray(done, done + count))
    done += count
  }
}

/** Hugging Face rotates the halves of a head, GGUF's llama neighbours: which stored row is a folder's. */
function storedRow(row: number, size: number): number {
  const within = row % size
  const isSecond = within >= size / 2
  return row - within + 2 * (within - (isSecond ? size / 2 : 0)) + Number(isSecond)
}

function readStored(
  { path, file }: { readonly path: string; readonly file: number },
  { block, stored }: Found,
  from: number,
  target: Float32Array,
): void {
  const first = Math.floor(from / block.numbers)
  const count = Math.ceil((from + target.length) / block.numbers) - first
  const bytes = Buffer.allocUnsafe(count * block.bytes)
  const start = stored.start + first * block.bytes
  for (let done = 0; done < bytes.length; ) {
    const read = readSync(file, bytes, done, bytes.length - done, start + done)
    if (read === 0) throw new Error(`${path} ends at byte ${start + done}: it is cut off.`)
    done += read
  }
  const skipped = from - first * block.numbers
  const isWhole = skipped === 0 && target.length === count * block.numbers
  const numbers = isWhole ? target : new Float32Array(count * block.numbers)
  block.unpack(bytes, numbers)
  if (!isWhole) target.set(numbers.subarray(skipped, skipped + target.length))
}

function nameOf(stored: string): string | undefined {
  const [, layer, kind, part] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(stored) ?? []
  if (layer === undefined) return otherNames[stored]
  const name = layerNames[kind!]
  return name && `model.layers.${layer}.${name}.${part}`
}

/** The rows of a head, if this architecture has those of queries and keys in another order. */
function turnedOf(
  name: string,
  { model_type: type, head_dim: size }: GgufConfig,
): number | undefined {
  return type === 'llama' && /\.self_attn\.[qk]_proj\./.test(name) ? size : undefined
}
