import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { checkCompanion, writeSynced } from '../checkpoint.ts'
import type { WeightsFile } from '../weights-file.ts'
import { bytesOf, encode, type NumberType } from './numbers.ts'
import type { ExportedModel } from './open-exported.ts'

/** Types of numbers that a folder's weights may have, with their names there. */
export const folderTypes = {
  f32: ['F32', 'float32'],
  bf16: ['BF16', 'bfloat16'],
  f16: ['F16', 'float16'],
} as const

export type FolderType = keyof typeof folderTypes

/** Writes a model as a Hugging Face folder; each file appears whole or not at all. */
export async function writeFolder(
  folder: string,
  { config, weights, files }: ExportedModel,
  type: FolderType,
): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const [name, bytes] of files) {
    checkCompanion(name)
    await writeSynced(join(folder, name), bytes)
  }
  await writeSynced(join(folder, 'model.safetensors'), safetensorsOf(weights, type))
  const { dtype: _, ...facts } = config
  const said = { ...facts, torch_dtype: folderTypes[type][1] }
  await writeSynced(join(folder, 'config.json'), `${JSON.stringify(said, undefined, 2)}\n`)
}

/** A safetensors file, piece by piece: no model lies in memory whole. */
function* safetensorsOf(weights: WeightsFile, type: FolderType): Iterable<Uint8Array> {
  let end = 0
  const entries = [...weights.tensors].map(([name, { shape }]) => {
    const start = end
    end += bytesOf(countOf(shape), type)
    return [name, { dtype: folderTypes[type][0], shape, data_offsets: [start, end] }] as const
  })
  const about = { __metadata__: { format: 'pt' }, ...Object.fromEntries(entries) }
  const text = JSON.stringify(about)
  const head = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(head.length))
  yield Buffer.concat([length, head])
  for (const name of weights.tensors.keys()) yield* tensorPieces(weights, name, type)
}

/** Numbers of a tensor that are read at a time: whole rows of every width that is possible. */
const pieceNumbers = 2 ** 22

/** A tensor's numbers as a file has them, some at a time. */
export function* tensorPieces(
  weights: WeightsFile,
  name: string,
  type: NumberType,
): Iterable<Uint8Array> {
  const { shape } = weights.tensors.get(name)!
  const count = countOf(shape)
  const row = shape.at(-1)!
  const size = Math.max(row, pieceNumbers - (pieceNumbers % row))
  for (let from = 0; from < count; from += size) {
    const numbers = new Float32Array(Math.min(size, count - from))
    weights.read(name, from, numbers)
    yield encode(numbers, type)
  }
}

export function countOf(shape: readonly number[]): number {
  return shape.reduce((product, side) => product * side, 1)
}
