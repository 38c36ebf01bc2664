/**
 * A 64-bit key as two unsigned 32-bit halves, so that it survives JSON and needs no bigint.
 * Every draw is a function of its key, never of a stream that several callers share.
 */
export interface Seed {
  readonly high: number
  readonly low: number
}

/** Numbers in [0, 1), one per call. */
export type Random = () => number

/**
 * The seed that belongs to these words and numbers, for instance (run seed, task, member, branch,
 * turn). Parts keep their kind and their borders: ('a', 'b'), ('ab') and (1), ('1') all differ.
 * HalfSipHash-2-4 with 64 bits of output (Aumasson and Bernstein 2012) over an injective encoding.
 */
export function seedOf(...parts: readonly (string | number)[]): Seed {
  return childSeed(rootKey, ...parts)
}

/** The seed of a named part of what `seed` stands for: splitting without a shared stream. */
export function childSeed(seed: Seed, ...parts: readonly (string | number)[]): Seed {
  const state = startHash(seed)
  for (const part of parts) {
    if (typeof part === 'string') absorbText(state, part)
    else absorbNumber(state, part)
  }
  return finishHash(state)
}

/** A stream of numbers in [0, 1) with 53 random bits each: Chris Doty-Humphrey's sfc32. */
export function random(seed: Seed): Random {
  const next = sfc32(seed)
  return () => {
    const high = next() >>> 5
    const low = next() >>> 6
    return (high * 0x4000000 + low) / 2 ** 53
  }
}

/** The number in [0, 1) at place `index` under `seed`, whatever was drawn before. */
export function randomAt(seed: Seed, index: number): number {
  if (!Number.isSafeInteger(index)) {
    throw new RangeError(`A random number's place must be a safe integer, got ${index}.`)
  }
  const state = startHash(seed)
  absorb(state, index | 0)
  absorb(state, Math.floor(index / 0x100000000) | 0)
  const { high, low } = finishHash(state)
  return ((high >>> 5) * 0x4000000 + (low >>> 6)) / 2 ** 53
}

/** A uniformly random order of the items, as a new array (Fisher and Yates). */
export function shuffle<T>(items: readonly T[], random: Random): T[] {
  const shuffled = [...items]
  for (let last = shuffled.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    const item = shuffled[last] as T
    shuffled[last] = shuffled[other] as T
    shuffled[other] = item
  }
  return shuffled
}

/** One of the items, each as likely as the others. */
export function pick<T>(items: readonly T[], random: Random): T {
  if (items.length === 0) throw new RangeError('Nothing to pick from: the list is empty.')
  return items[Math.floor(random() * items.length)] as T
}

const rootKey: Seed = { high: 0x65737061, low: 0x6c696572 }

interface HashState {
  readonly v: Int32Array
  words: number
}

/** Shared by all calls: a hash is finished before the next one starts. */
const hash: HashState = { v: new Int32Array(4), words: 0 }

function startHash({ low, high }: Seed): HashState {
  const { v } = hash
  v[0] = low
  v[1] = high ^ 0xee
  v[2] = low ^ 0x6c796765
  v[3] = high ^ 0x74656462
  hash.words = 0
  return hash
}

function absorb(state: HashState, word: number): void {
  const { v } = state
  v[3]! ^= word
  sipRounds(v, 2)
  v[0]! ^= word
  state.words++
}

function absorbText(state: HashState, text: string): void {
  absorb(state, 1)
  absorb(state, text.length)
  for (let at = 0; at < text.length; at += 2) {
    const second = at + 1 < text.length ? text.charCodeAt(at + 1) : 0
    absorb(state, text.charCodeAt(at) | (second << 16))
  }
}

const float = new Float64Array(1)
const floatWords = new Int32Array(float.buffer)

function absorbNumber(state: HashState, value: number): void {
  if (Number.isNaN(value)) throw new RangeError('NaN cannot be part of a seed.')
  // Adding 0 turns -0 into 0: they are equal, so they must name the same seed.
  float[0] = value + 0
  absorb(state, 2)
  absorb(state, floatWords[0]!)
  absorb(state, floatWords[1]!)
}

function finishHash(state: HashState): Seed {
  absorb(state, (state.words * 4) << 24)
  const { v } = state
  v[2]! ^= 0xee
  sipRounds(v, 4)
  const low = (v[1]! ^ v[3]!) >>> 0
  v[1]! ^= 0xdd
  sipRounds(v, 4)
  return { high: (v[1]! ^ v[3]!) >>> 0, low }
}

function sipRounds(v: Int32Array, rounds: number): void {
  let a = v[0]!
  let b = v[1]!
  let c = v[2]!
  let d = v[3]!
  for (let round = 0; round < rounds; round++) {
    a = (a + b) | 0
    b = rotate(b, 5) ^ a
    a = rotate(a, 16)
    c = (c + d) | 0
    d = rotate(d, 8) ^ c
    a = (a + d) | 0
    d = rotate(d, 7) ^ a
    c = (c + b) | 0
    b = rotate(b, 13) ^ c
    c = rotate(c, 16)
  }
  v[0] = a
  v[1] = b
  v[2] = c
  v[3] = d
}

function rotate(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by))
}

function sfc32(seed: Seed): () => number {
  let a = seed.low | 0
  let b = seed.high | 0
  let c = 0
  let counter = 1
  const next = () => {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (rotate(c, 21) + sum) | 0
    return sum
  }
  // The author's seeding: enough rounds that close seeds no longer give close numbers.
  for (let round = 0; round < 12; round++) next()
  return next
}
