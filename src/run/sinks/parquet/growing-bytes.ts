/** Bytes that grow at their end. */
export class GrowingBytes {
  /** What was written lies in its first `length` bytes; the rest is room. */
  bytes: Buffer
  length = 0

  constructor(room = 1 << 12) {
    this.bytes = Buffer.allocUnsafe(room)
  }

  /** Makes room for `size` more bytes. */
  reserve(size: number): void {
    if (this.length + size <= this.bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, this.length + size))
    this.bytes.copy(grown, 0, 0, this.length)
    this.bytes = grown
  }

  byte(value: number): void {
    this.reserve(1)
    this.bytes[this.length++] = value
  }

  /** A whole number from 0 to 2^53, seven bits to a byte, the lowest first. */
  varint(value: number): void {
    this.reserve(8)
    let rest = value
    while (rest >= 0x80) {
      this.bytes[this.length++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.bytes[this.length++] = rest
  }

  /** A whole number of any sign: small ones take few bytes. */
  zigzag(value: number): void {
    this.varint(value < 0 ? -2 * value - 1 : 2 * value)
  }

  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length)
    this.bytes.set(bytes, this.length)
    this.length += bytes.length
  }

  /** A text in UTF-8, after its length in four bytes. */
  sizedText(text: string): void {
    // A character of a string takes at most three bytes.
    this.reserve(text.length * 3 + 4)
    const size = this.bytes.write(text, this.length + 4)
    this.bytes.writeUInt32LE(size, this.length)
    this.length += size + 4
  }

  /** What was written so far; valid until the next write. */
  view(): Buffer {
    return this.bytes.subarray(0, this.length)
  }

  /** Forgets what was written and keeps the room. */
  clear(): void {
    this.length = 0
  }

  /** Gives away what was written, and starts anew with as much room. */
  take(): Buffer {
    const taken = this.view()
    this.bytes = Buffer.allocUnsafe(this.bytes.length)
    this.length = 0
    return taken
  }
}
