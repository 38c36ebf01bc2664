/** Bytes of numbers. */
const sizes = { byte: 1, short: 2, int: 4, long: 8 } as const
type Size = keyof typeof sizes

/** What a field of a table may hold; `undefined` is left out. */
export type Flat =
  | { readonly [Kind in Size]: { readonly kind: Kind; readonly value: number } }[Size]
  | { readonly kind: 'text'; readonly value: string }
  | { readonly kind: 'table'; readonly fields: readonly (Flat | undefined)[] }
  | { readonly kind: 'tables'; readonly tables: readonly (readonly (Flat | undefined)[])[] }
  /** Structs of two longs. */
  | { readonly kind: 'pairs'; readonly pairs: readonly (readonly [number, number])[] }

/** A table as a FlatBuffer, which Arrow writes its headers in: every object lies behind those that point to it. */
export function flatBuffer(fields: readonly (Flat | undefined)[]): Buffer {
  const writer = new FlatWriter()
  const root = writer.reserve(4, 8)
  writer.point(root, writer.table(fields))
  return writer.end()
}

class FlatWriter {
  #bytes = Buffer.alloc(1 << 12)
  #end = 0

  end(): Buffer {
    this.reserve(0, 8)
    return this.#bytes.subarray(0, this.#end)
  }

  /** Takes so many bytes whose place is a multiple of the second number; gives the place. */
  reserve(size: number, align: number): number {
    const place = Math.ceil(this.#end / align) * align
    this.#end = place + size
    if (this.#end > this.#bytes.length) {
      const bytes = Buffer.alloc(2 * this.#end)
      this.#bytes.copy(bytes)
      this.#bytes = bytes
    }
    return place
  }

  /** Lets a place point to an object behind it. */
  point(from: number, to: number): void {
    this.#bytes.writeUInt32LE(to - from, from)
  }

  table(fields: readonly (Flat | undefined)[]): number {
    let size = 4
    const offsets = fields.map(field => {
      if (!field) return 0
      const own = sizeOf(field)
      const offset = Math.ceil(size / own) * own
      size = offset + own
      return offset
    })
    const layout = this.reserve(4 + 2 * fields.length, 2)
    const table = this.reserve(size, 8)
    for (const [index, value] of [4 + 2 * fields.length, size, ...offsets].entries()) {
      this.#bytes.writeUInt16LE(value, layout + 2 * index)
    }
    this.#bytes.writeInt32LE(table - layout, table)
    for (const [index, field] of fields.entries()) {
      if (field) this.#put(field, table + offsets[index]!)
    }
    return table
  }

  #put(field: Flat, place: number): void {
    if (field.kind === 'byte') this.#bytes.writeUInt8(field.value, place)
    else if (field.kind === 'short') this.#bytes.writeInt16LE(field.value, place)
    else if (field.kind === 'int') this.#bytes.writeInt32LE(field.value, place)
    else if (field.kind === 'long') this.#bytes.writeBigInt64LE(BigInt(field.value), place)
    else if (field.kind === 'text') this.point(place, this.#text(field.value))
    else if (field.kind === 'table') this.point(place, this.table(field.fields))
    else if (field.kind === 'tables') this.point(place, this.#tables(field.tables))
    else this.point(place, this.#pairs(field.pairs))
  }

  #text(value: string): number {
    const text = Buffer.from(value)
    // A zero ends it.
    const place = this.reserve(4 + text.length + 1, 4)
    this.#bytes.writeUInt32LE(text.length, place)
    text.copy(this.#bytes, place + 4)
    return place
  }

  #tables(tables: readonly (readonly (Flat | undefined)[])[]): number {
    const place = this.reserve(4 + 4 * tables.length, 4)
    this.#bytes.writeUInt32LE(tables.length, place)
    for (const [index, fields] of tables.entries()) {
      this.point(place + 4 + 4 * index, this.table(fields))
    }
    return place
  }

  #pairs(pairs: readonly (readonly [number, number])[]): number {
    const place = this.reserve(8 + 16 * pairs.length, 8) + 4
    this.#bytes.writeUInt32LE(pairs.length, place)
    for (const [index, numbers] of pairs.entries()) {
      for (const [at, number] of numbers.entries()) {
        this.#bytes.writeBigInt64LE(BigInt(number), place + 4 + 16 * index + 8 * at)
      }
    }
    return place
  }
}

const sizeOf = ({ kind }: Flat): number => (kind in sizes ? sizes[kind as Size] : 4)
