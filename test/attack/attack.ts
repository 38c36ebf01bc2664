import { type Random, random, seedOf } from '../../src/base/math/random.ts'

/** One way to attack the program, case by case. */
export interface Attack {
  readonly name: string
  /** The promise that is attacked. */
  readonly promise: string
  /** How many of a thousand cases of a campaign are of this kind. */
  readonly share: number
  /** Prepares it; the returned function makes one case from these draws and throws if a promise is broken. */
  open(): Promise<(draw: Random) => void | Promise<void>>
}

/** The result of one attack's cases. */
export interface Held {
  readonly name: string
  readonly promise: string
  readonly cases: number
  readonly broken: readonly string[]
  /** Milliseconds that the longest case took. */
  readonly slowest: number
}

const mostTold = 5

/** Makes so many cases, each a function of its number and the seed, so that any can be made again. */
export async function runAttack(
  attack: Attack,
  { seed, cases }: { readonly seed: number; readonly cases: number },
): Promise<Held> {
  const make = await attack.open()
  const broken: string[] = []
  let slowest = 0
  for (let number = 0; number < cases; number++) {
    const started = performance.now()
    try {
      await make(random(seedOf('attack', attack.name, seed, number)))
    } catch (cause) {
      if (broken.length < mostTold) broken.push(`case ${number}: ${(cause as Error).message}`)
    }
    slowest = Math.max(slowest, performance.now() - started)
    // Yield now and then, so that signals are handled.
    if (number % 256 === 255) await new Promise(resolve => setImmediate(resolve))
  }
  const { name, promise } = attack
  return { name, promise, cases, broken, slowest }
}

/** Throws if something is not true. */
export function hold(isTrue: boolean, message: string): void {
  if (!isTrue) throw new Error(message)
}

/** One of these. */
export function oneOf<T>(items: readonly T[], draw: Random): T {
  return items[Math.floor(draw() * items.length)]!
}

/** A text of up to so many pieces. */
export function piecesOf(pieces: readonly string[], most: number, draw: Random): string {
  const count = Math.floor(draw() * (most + 1))
  return Array.from({ length: count }, () => oneOf(pieces, draw)).join('')
}

const odd = [0, 1, -1, 1e308, -0, 2 ** 53, null, true, '', '\0', 'a'.repeat(300), [], {}, [[]]]

/** Plain data with one place changed, left out or made of something else. */
export function damagedJson(value: unknown, draw: Random, depth = 0): unknown {
  const isLeaf = typeof value !== 'object' || value === null
  if (isLeaf || draw() < 0.15 + depth * 0.1) return oneOf(odd, draw)
  if (Array.isArray(value)) {
    const at = Math.floor(draw() * (value.length + 1))
    if (draw() < 0.3) return [...value.slice(0, at), ...value.slice(at + 1)]
    return value.map((each, index) => (index === at ? damagedJson(each, draw, depth + 1) : each))
  }
  const entries = Object.entries(value)
  const at = Math.floor(draw() * entries.length)
  if (draw() < 0.3) return Object.fromEntries(entries.filter((_, index) => index !== at))
  return Object.fromEntries(
    entries.map(([key, each], index) => [
      key,
      index === at ? damagedJson(each, draw, depth + 1) : each,
    ]),
  )
}

/** Bytes with some of them changed, left out, doubled or cut off. */
export function damagedBytes(bytes: Buffer, draw: Random): Buffer {
  const copy = Buffer.from(bytes)
  const at = Math.floor(draw() * copy.length)
  const kind = Math.floor(draw() * 5)
  if (kind === 0) copy[at]! ^= 1 << Math.floor(draw() * 8)
  else if (kind === 1) return copy.subarray(0, at)
  else if (kind === 2) copy.fill(0, at, Math.min(copy.length, at + Math.floor(draw() * 64)))
  else if (kind === 3) return Buffer.concat([copy.subarray(0, at), copy.subarray(at + 1)])
  else return Buffer.concat([copy.subarray(0, at), copy.subarray(Math.floor(draw() * at))])
  return copy
}
