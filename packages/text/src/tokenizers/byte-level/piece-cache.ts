import type { IdBuffer } from '../buffers.ts'

/** Pieces longer than this are not remembered: they hardly ever come back. */
export const LONGEST_CACHED = 40

const SLOT_BITS = 17
const SLOTS = 1 << SLOT_BITS
/** With half of the slots taken or the store full, everything is forgotten: 5 MB at most. */
const MOST_ENTRIES = SLOTS >> 1
const STORE = 1 << 20
const HEADER = 2

/** Remembers the ids of pieces of text, in typed arrays: no string is cut, no object is made. */
export class PieceCache {
  /** The place of an entry in the store, by hash; 0 is empty. */
  readonly #slots = new Int32Array(SLOTS)
  /** Entries: the hash, both lengths, the units of the piece two by two, the ids. */
  readonly #store = new Int32Array(STORE)
  readonly #storedUnits = new Uint16Array(this.#store.buffer)
  #used = 1
  #entries = 0
  #soughtHash = 0
  #soughtSlot = 0
  #soughtStart = 0
  #soughtLength = 0

  /** The place of a piece, or 0; what was not found can then be given to `remember`. */
  find(units: Uint16Array, start: number, end: number): number {
    const hash = hashOf(units, start, end)
    const length = end - start
    let slot = hash >>> (32 - SLOT_BITS)
    for (let place = this.#slots[slot]!; place !== 0; place = this.#slots[slot]!) {
      if (this.#store[place] === hash && this.#store[place + 1]! >> 16 === length) {
        const stored = 2 * (place + HEADER)
        let same = 0
        while (same < length && this.#storedUnits[stored + same] === units[start + same]) same++
        if (same === length) return place
      }
      slot = (slot + 1) & (SLOTS - 1)
    }
    this.#soughtHash = hash
    this.#soughtSlot = slot
    this.#soughtStart = start
    this.#soughtLength = length
    return 0
  }

  /** Adds the ids of a piece that was found. */
  addTo(ids: IdBuffer, place: number): void {
    const lengths = this.#store[place + 1]!
    const count = lengths & 0xffff
    let from = place + HEADER + (((lengths >> 16) + 1) >> 1)
    ids.reserve(count)
    for (let at = 0; at < count; at++) ids.ids[ids.length++] = this.#store[from++]!
  }

  /** Stores the piece that the last `find` did not find; its ids are the newest `count`. */
  remember(units: Uint16Array, ids: IdBuffer, count: number): void {
    const length = this.#soughtLength
    const needed = HEADER + ((length + 1) >> 1) + count
    if (this.#entries >= MOST_ENTRIES || this.#used + needed > STORE) this.#forget()
    const place = this.#used
    this.#store[place] = this.#soughtHash
    this.#store[place + 1] = (length << 16) | count
    const stored = 2 * (place + HEADER)
    for (let at = 0; at < length; at++) {
      this.#storedUnits[stored + at] = units[this.#soughtStart + at]!
    }
    let from = ids.length - count
    for (let at = place + needed - count; at < place + needed; at++) {
      this.#store[at] = ids.ids[from++]!
    }
    this.#slots[this.#soughtSlot] = place
    this.#used += needed
    this.#entries++
  }

  #forget(): void {
    this.#slots.fill(0)
    this.#entries = 0
    this.#used = 1
    this.#soughtSlot = this.#soughtHash >>> (32 - SLOT_BITS)
  }
}

function hashOf(units: Uint16Array, start: number, end: number): number {
  let hash = 0
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ units[at]!, 0x9e3779b1)
  return hash ^ (hash >>> 15)
}
