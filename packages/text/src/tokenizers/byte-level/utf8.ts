// What UTF-16 units are as UTF-8. All of them must be well formed.

/** Writes units as UTF-8 and answers the count of bytes. */
export function toUtf8(
  units: Uint16Array,
  { start, end }: { readonly start: number; readonly end: number },
  bytes: Uint8Array,
): number {
  let count = 0
  for (let at = start; at < end; at++) {
    const unit = units[at]!
    if (unit < 0x80) bytes[count++] = unit
    else if (unit < 0x800) {
      bytes[count++] = 0xc0 | (unit >> 6)
      bytes[count++] = 0x80 | (unit & 0x3f)
    } else if (unit < 0xd800 || unit > 0xdfff) {
      bytes[count++] = 0xe0 | (unit >> 12)
      bytes[count++] = 0x80 | ((unit >> 6) & 0x3f)
      bytes[count++] = 0x80 | (unit & 0x3f)
    } else {
      const point = ((unit - 0xd800) << 10) + (units[++at]! - 0xdc00) + 0x10000
      bytes[count++] = 0xf0 | (point >> 18)
      bytes[count++] = 0x80 | ((point >> 12) & 0x3f)
      bytes[count++] = 0x80 | ((point >> 6) & 0x3f)
      bytes[count++] = 0x80 | (point & 0x3f)
    }
  }
  return count
}

/** The UTF-8 of a unit; half of a pair has none. */
export function bytesOf(unit: number): number[] {
  if (unit < 0x80) return [unit]
  if (unit >= 0xd800 && unit <= 0xdfff) return []
  const last = lastByte(unit)
  return unit < 0x800
    ? [firstByte(unit), last]
    : [firstByte(unit), 0x80 | ((unit >> 6) & 0x3f), last]
}

/** The first byte of the UTF-8 of a character that is, or begins with, this unit. */
export function firstByte(unit: number): number {
  if (unit < 0x80) return unit
  if (unit < 0x800) return 0xc0 | (unit >> 6)
  return isHighSurrogate(unit) ? 0xf0 | ((unit - 0xd7c0) >> 8) : 0xe0 | (unit >> 12)
}

/** The last byte of the UTF-8 of a character that is, or ends with, this unit. */
export function lastByte(unit: number): number {
  return unit < 0x80 ? unit : 0x80 | (unit & 0x3f)
}

/** Whether a byte continues a character of UTF-8. */
export function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}

export function isHighSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xd800
}

export function isLowSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xdc00
}
