/** No node, or no value. */
export const NOTHING = -1

/** Texts with numbers, found by their beginnings. */
export class PrefixTree {
  /** Node, unit and next node, by hash; a node of -1 is empty. */
  readonly #table: Int32Array
  readonly #mask: number
  readonly #values: Int32Array
  #count = 1

  constructor(entries: readonly (readonly [string, number])[]) {
    const units = entries.reduce((sum, [text]) => sum + text.length, 0)
    const bits = Math.max(4, Math.ceil(Math.log2(2 * units + 1)))
    this.#mask = (1 << bits) - 1
    this.#table = new Int32Array(3 << bits).fill(NOTHING)
    this.#values = new Int32Array(units + 1).fill(NOTHING)
    for (const [text, value] of entries) this.#insert(text, value)
  }

  /** The node behind a unit, or `NOTHING`; the tree begins at node 0. */
  next(node: number, unit: number): number {
    return this.#table[3 * this.#slotOf(node, unit) + 2]!
  }

  /** The number of the text that ends at a node, or `NOTHING`. */
  valueAt(node: number): number {
    return this.#values[node]!
  }

  #slotOf(node: number, unit: number): number {
    const table = this.#table
    let slot = Math.imul(Math.imul(node, 0x9e3779b1) ^ unit, 0x85ebca6b)
    slot = (slot ^ (slot >>> 15)) & this.#mask
    while (table[3 * slot] !== NOTHING) {
      if (table[3 * slot] === node && table[3 * slot + 1] === unit) break
      slot = (slot + 1) & this.#mask
    }
    return slot
  }

  #insert(text: string, value: number): void {
    let node = 0
    for (let at = 0; at < text.length; at++) {
      const slot = this.#slotOf(node, text.charCodeAt(at))
      if (this.#table[3 * slot] === NOTHING) {
        this.#table.set([node, text.charCodeAt(at), this.#count++], 3 * slot)
      }
      node = this.#table[3 * slot + 2]!
    }
    this.#values[node] = value
  }
}
