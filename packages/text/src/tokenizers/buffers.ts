/** Memory above this, left by a very long text, is released. */
const KEPT = 1 << 20

/** Ids that are still being gathered. */
export class IdBuffer {
  ids = new Int32Array(256)
  length = 0

  push(id: number): void {
    if (this.length === this.ids.length) this.reserve(1)
    this.ids[this.length++] = id
  }

  /** Makes room, so that a loop may write into `ids` itself. */
  reserve(count: number): void {
    if (this.length + count > this.ids.length) this.ids = grown(this.ids, this.length + count)
  }

  /** Adds ids that are known. */
  add(ids: Int32Array): void {
    this.reserve(ids.length)
    this.ids.set(ids, this.length)
    this.length += ids.length
  }

  /** What `fill` adds, as an array of its own. */
  gather(fill: () => void): Int32Array {
    this.length = 0
    fill()
    const gathered = this.ids.slice(0, this.length)
    if (this.ids.length > KEPT) this.ids = new Int32Array(256)
    return gathered
  }
}

/**
 * Pieces of a text as `[start, end)` in UTF-16 units, in order. One list is reused for all texts: a
 * list per text would cost more than cutting a short one.
 */
export class Cuts {
  /** Starts at the even places, ends at the odd ones. */
  edges = new Int32Array(256)
  count = 0

  /** Begins anew; what the list held is gone. */
  clear(): this {
    if (this.edges.length > KEPT) this.edges = new Int32Array(256)
    this.count = 0
    return this
  }

  /** Empty pieces are left out: no model makes a token of them. */
  add(start: number, end: number): void {
    if (start >= end) return
    if (2 * this.count === this.edges.length) this.edges = grown(this.edges, 2 * this.count + 2)
    this.edges[2 * this.count] = start
    this.edges[2 * this.count + 1] = end
    this.count++
  }

  start(index: number): number {
    return this.edges[2 * index]!
  }

  end(index: number): number {
    return this.edges[2 * index + 1]!
  }
}

/** A copy with room for at least `needed`, twice as long as before so that growing stays linear. */
function grown(values: Int32Array, needed: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(Math.max(needed, 2 * values.length))
  larger.set(values)
  return larger
}

const scratch = new Uint16Array(1 << 15)

/** The units of a text as an array, which loops read faster than a string; good until the next. */
export function toUnits(text: string): Uint16Array {
  const units = text.length <= scratch.length ? scratch : new Uint16Array(text.length)
  if (text.length < 128) for (let at = 0; at < text.length; at++) units[at] = text.charCodeAt(at)
  else Buffer.from(units.buffer).write(text, 'utf16le')
  return units
}
