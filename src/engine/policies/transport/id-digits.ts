/** An id has at most ten digits, and a comma before it. */
export const widestId = 11

/** Where digits go: behind the first `length` bytes of `text`, which hold `count` ids already. */
export interface DigitSink {
  readonly text: Uint8Array
  readonly length: number
  readonly count: number
}

const zero = 48
const comma = 44
/** The three digits of 0 to 999, one after the other. */
const triples = new Uint8Array(3000)
for (let number = 0; number < 1000; number++) {
  triples[number * 3] = zero + Math.floor(number / 100)
  triples[number * 3 + 1] = zero + (Math.floor(number / 10) % 10)
  triples[number * 3 + 2] = zero + (number % 10)
}

/**
 * Writes the ids that are not there yet in decimal, with commas between all of them. Returns where
 * the text ends.
 */
export function writeIds(ids: Int32Array, { text, length, count }: DigitSink): number {
  let at = length
  for (let index = count; index < ids.length; index++) {
    const id = ids[index]!
    if (id < 0) throw new RangeError(`Token ${index} of the prompt is ${id}, not a token id.`)
    if (index > 0) text[at++] = comma
    at = writeId(text, at, id)
  }
  return at
}

/** How many digits an id has. */
export function idWidth(id: number): number {
  if (id < 1e5) return id < 1e3 ? (id < 1e2 ? (id < 10 ? 1 : 2) : 3) : id < 1e4 ? 4 : 5
  return id < 1e7 ? (id < 1e6 ? 6 : 7) : id < 1e9 ? (id < 1e8 ? 8 : 9) : 10
}

function writeId(text: Uint8Array, at: number, id: number): number {
  if (id < 1000) return writeLeading(text, at, id)
  const thousands = (id / 1000) | 0
  const rest = id - thousands * 1000
  if (thousands < 1000) return writeTriple(text, writeLeading(text, at, thousands), rest)
  return writeTriple(text, writeThousands(text, at, thousands), rest)
}

function writeThousands(text: Uint8Array, at: number, number: number): number {
  const millions = (number / 1000) | 0
  const billions = (millions / 1000) | 0
  const next =
    billions > 0
      ? writeTriple(text, writeLeading(text, at, billions), millions - billions * 1000)
      : writeLeading(text, at, millions)
  return writeTriple(text, next, number - millions * 1000)
}

function writeTriple(text: Uint8Array, at: number, number: number): number {
  const digits = number * 3
  text[at] = triples[digits]!
  text[at + 1] = triples[digits + 1]!
  text[at + 2] = triples[digits + 2]!
  return at + 3
}

function writeLeading(text: Uint8Array, start: number, number: number): number {
  let at = start
  const digits = number * 3
  if (number >= 100) text[at++] = triples[digits]!
  if (number >= 10) text[at++] = triples[digits + 1]!
  text[at++] = triples[digits + 2]!
  return at
}
