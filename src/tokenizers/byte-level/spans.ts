import type { Merges } from './merges.ts'

/** What the bytes of each symbol are like at both ends; undefined where merges cannot tell. */
export interface SymbolEnds {
  readonly first: Int16Array
  readonly last: Int16Array
  /** How many bytes its last character still lacks. */
  readonly missing: Uint8Array
}

/** Whether a byte continues a character of UTF-8. */
export function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}

/**
 * Follows the merges from single bytes on. Undefined if a merge joins a symbol that no earlier merge
 * has made, which training never writes.
 */
export function symbolEnds(
  idOfByte: Int32Array,
  { lefts, rights, results }: Merges,
  size: number,
): SymbolEnds | undefined {
  const first = new Int16Array(size).fill(-1)
  const last = new Int16Array(size)
  const missing = new Uint8Array(size)
  /** How many bytes a symbol has that is nothing but continuation. */
  const run = new Uint8Array(size)
  idOfByte.forEach((id, byte) => {
    if (id < 0) return
    first[id] = byte
    last[id] = byte
    missing[id] = byte < 0xc0 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3
    run[id] = isContinuation(byte) ? 1 : 0
  })
  for (let rank = 0; rank < results.length; rank++) {
    const left = lefts[rank]!
    const right = rights[rank]!
    const made = results[rank]!
    if (first[left]! < 0 || first[right]! < 0) return undefined
    first[made] = first[left]!
    last[made] = last[right]!
    missing[made] = run[right]! > 0 ? Math.max(0, missing[left]! - run[right]!) : missing[right]!
    run[made] = run[left]! > 0 && run[right]! > 0 ? Math.min(run[left]! + run[right]!, 3) : 0
  }
  return { first, last, missing }
}
