import { GrowingBytes } from './growing-bytes.ts'

/**
 * Small numbers in Parquet's hybrid form: as runs (how often, then the value), or, where those are too short to be worth
 * it, side by side in as many bits as the largest takes.
 */
export class RunLengths {
  readonly #bitWidth: number
  readonly #values: number[] = []
  readonly #counts: number[] = []

  /** `bitWidth`: how many bits the largest value takes. */
  constructor(bitWidth: number) {
    this.#bitWidth = bitWidth
  }

  /** Adds a value so many times. */
  add(value: number, count: number): void {
    if (count === 0) return
    const last = this.#values.length - 1
    if (last >= 0 && this.#values[last] === value) this.#counts[last]! += count
    else {
      this.#values.push(value)
      this.#counts.push(count)
    }
  }

  end(): Uint8Array {
    const groups = Math.ceil(this.#counts.reduce((sum, count) => sum + count, 0) / 8)
    const leastRuns = this.#counts.length * (1 + Math.ceil(this.#bitWidth / 8))
    return leastRuns <= groups * this.#bitWidth ? this.#asRuns() : this.#sideBySide(groups)
  }

  #asRuns(): Uint8Array {
    const bytes = new GrowingBytes(256)
    for (let run = 0; run < this.#values.length; run++) {
      bytes.varint(this.#counts[run]! * 2)
      const value = this.#values[run]!
      for (let bit = 0; bit < this.#bitWidth; bit += 8) bytes.byte((value >>> bit) & 0xff)
    }
    return bytes.view()
  }

  /** One stretch of groups of eight numbers. */
  #sideBySide(groups: number): Uint8Array {
    const bytes = new GrowingBytes(groups * this.#bitWidth + 8)
    bytes.varint(groups * 2 + 1)
    const start = bytes.length
    bytes.length += groups * this.#bitWidth
    bytes.bytes.fill(0, start, bytes.length)
    let bit = start * 8
    for (let run = 0; run < this.#values.length; run++) {
      for (let left = this.#counts[run]!; left > 0; left--) {
        putBits(bytes.bytes, bit, this.#values[run]!)
        bit += this.#bitWidth
      }
    }
    return bytes.view()
  }
}

/** Sets the bits of a number, the lowest first. */
function putBits(bytes: Uint8Array, start: number, value: number): void {
  let at = start
  for (let rest = value; rest > 0; rest >>>= 1) {
    if (rest & 1) bytes[at >>> 3]! |= 1 << (at & 7)
    at++
  }
}

/** How many bits numbers up to `largest` take. */
export const bitsFor = (largest: number): number => 32 - Math.clz32(largest)
