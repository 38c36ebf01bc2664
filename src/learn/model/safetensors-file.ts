import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { type Entry, headerLength, readEntries } from './safetensors.ts'
import type { WeightsFile, WeightType } from './weights-file.ts'

/** An open file of tensors. */
interface Shard {
  readonly path: string
  readonly file: number
  /** Where the numbers begin. */
  readonly start: number
  readonly entries: readonly Entry[]
}

/** Opens the weights of a model folder: one safetensors file, or those that its index names. */
export function openSafetensors(folder: string): WeightsFile {
  const shards: Shard[] = []
  const close = () => {
    for (const { file } of shards) closeSync(file)
  }
  try {
    for (const name of shardNames(folder)) shards.push(openShard(join(folder, name)))
    return weightsOf(folder, shards, close)
  } catch (cause) {
    close()
    throw cause
  }
}

function weightsOf(source: string, shards: readonly Shard[], close: () => void): WeightsFile {
  const places = new Map<string, { readonly shard: Shard; readonly entry: Entry }>()
  for (const shard of shards) {
    for (const entry of shard.entries) {
      if (places.has(entry.name)) throw new Error(`${source} has the tensor ${entry.name} twice.`)
      places.set(entry.name, { shard, entry })
    }
  }
  const bytesOf = (name: string, from: number, target: Uint8Array, width: number): WeightType => {
    const place = places.get(name)
    if (!place) throw new Error(`${source} has no tensor ${name}.`)
    const { shard, entry } = place
    const at = entry.start + from * width
    if (at + target.length > entry.end) throw new RangeError(`${name} ends before ${at}.`)
    readExactly(shard, shard.start + at, target)
    return entry.type
  }
  return {
    source,
    tensors: new Map([...places].map(([name, { entry }]) => [name, entry])),
    read(name, from, target) {
      const type = places.get(name)?.entry.type
      if (type === 'f32') bytesOf(name, from, bytesIn(target), 4)
      else {
        const halves = new Uint16Array(target.length)
        widen(halves, bytesOf(name, from, bytesIn(halves), 2), target)
      }
      const wrong = target.findIndex(value => !Number.isFinite(value))
      if (wrong < 0) return
      throw new Error(
        `${source} is damaged: number ${from + wrong} of ${name} is ${target[wrong]}.`,
      )
    },
    readHalves(name, from, target) {
      const type = bytesOf(name, from, bytesIn(target), 2)
      const wrong = strangeHalf(target, type)
      if (wrong < 0) return
      throw new Error(`${source} is damaged: number ${from + wrong} of ${name} is not finite.`)
    },
    [Symbol.dispose]: close,
  }
}

function bytesIn({ buffer, byteOffset, byteLength }: Float32Array | Uint16Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}

/** The files of a folder: its only one, or those of its index, each once. */
function shardNames(folder: string): readonly string[] {
  const index = join(folder, 'model.safetensors.index.json')
  if (existsSync(join(folder, 'model.safetensors'))) return ['model.safetensors']
  if (!existsSync(index)) {
    throw new Error(`${folder} has no model.safetensors and no model.safetensors.index.json.`)
  }
  const { weight_map: map } = parse(index) as { weight_map?: unknown }
  const names = [...new Set(Object.values(typeof map === 'object' && map !== null ? map : {}))]
  const wrong = names.find(name => typeof name !== 'string' || !/^[\w.-]+\.safetensors$/.test(name))
  if (names.length === 0 || wrong !== undefined) {
    throw new Error(`${index} names no safetensors files in its weight_map: ${String(wrong)}.`)
  }
  return names as string[]
}

function parse(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) ?? {}
  } catch (cause) {
    throw new Error(`${path} is not JSON.`, { cause })
  }
}

function openShard(path: string): Shard {
  if (!existsSync(path)) throw new Error(`${path} is missing: the index of its folder names it.`)
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    const prefix = new Uint8Array(Math.min(8, size))
    readExactly({ path, file }, 0, prefix)
    const length = headerLength(prefix, size, path)
    const header = new Uint8Array(length)
    readExactly({ path, file }, 8, header)
    return { path, file, start: 8 + length, entries: readEntries(header, size - 8 - length, path) }
  } catch (cause) {
    closeSync(file)
    throw cause
  }
}

function readExactly(
  { path, file }: Pick<Shard, 'path' | 'file'>,
  position: number,
  target: Uint8Array,
): void {
  for (let done = 0; done < target.length; ) {
    const count = readSync(file, target, done, target.length - done, position + done)
    if (count === 0) throw new Error(`${path} ends at byte ${position + done}: it is cut off.`)
    done += count
  }
}

/** Halves as floats, exactly. */
export function widen(halves: Uint16Array, type: WeightType, target: Float32Array): void {
  const words = new Uint32Array(target.buffer, target.byteOffset, target.length)
  if (type === 'bf16') {
    for (let at = 0; at < words.length; at++) words[at] = halves[at]! << 16
    return
  }
  // Shifted into place, a half's exponent is too small by 112; times 2^112 also makes subnormal halves right.
  for (let at = 0; at < words.length; at++) words[at] = (halves[at]! & 0x7fff) << 13
  for (let at = 0; at < target.length; at++) {
    const size = target[at]! * 2 ** 112
    target[at] = isFiniteHalf(halves[at]!, type)
      ? halves[at]! & 0x8000
        ? -size
        : size
      : Number.NaN
  }
}

/** The place of the first half that is not finite; −1 if all are. */
function strangeHalf(halves: Uint16Array, type: WeightType): number {
  // A plain loop: there are hundreds of millions of them.
  for (let at = 0; at < halves.length; at++) if (!isFiniteHalf(halves[at]!, type)) return at
  return -1
}

function isFiniteHalf(half: number, type: WeightType): boolean {
  const exponent = type === 'bf16' ? 0x7f80 : 0x7c00
  return (half & exponent) !== exponent
}
