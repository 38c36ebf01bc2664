// GPT-2 writes bytes as printable characters: those of Latin-1 that can be seen stand for
// themselves, the others follow from U+0100 on.

/** The character that stands for each byte, as a UTF-16 unit. */
export const unitOfByte: Uint16Array = buildAlphabet()

const byteOfUnit = new Int16Array(0x144).fill(-1)
for (let byte = 0; byte < 256; byte++) byteOfUnit[unitOfByte[byte]!] = byte

const utf8 = new TextEncoder()

/** The byte that a unit stands for, or -1. */
export function byteOf(unit: number): number {
  return unit < 0x144 ? byteOfUnit[unit]! : -1
}

/** The bytes of a token: by the alphabet, or as UTF-8 if a character lies outside it. */
export function toBytes(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length)
  for (let at = 0; at < token.length; at++) {
    const byte = byteOf(token.charCodeAt(at))
    if (byte < 0) return utf8.encode(token)
    bytes[at] = byte
  }
  return bytes
}

/** Writes bytes as the alphabet does. */
export function fromBytes(bytes: Uint8Array): string {
  let token = ''
  for (const byte of bytes) token += String.fromCharCode(unitOfByte[byte]!)
  return token
}

function buildAlphabet(): Uint16Array {
  const alphabet = new Uint16Array(256)
  let hidden = 0x100
  for (let byte = 0; byte < 256; byte++) {
    const isSeen = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad)
    alphabet[byte] = isSeen ? byte : hidden++
  }
  return alphabet
}
