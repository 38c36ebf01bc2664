/** Names of the lists in which clients send the whole conversation every time. */
const listNames: readonly string[] = ['messages', 'input', 'contents']

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const openBrace = 0x7b

/** A body that was read, in memory with room to grow, and where the entries of its list end. */
export interface KnownBody {
  readonly bytes: Buffer
  readonly length: number
  /** The name of the list. */
  readonly list: string
  /** Where its first entry may begin. */
  readonly open: number
  readonly ends: readonly number[]
  readonly entries: readonly unknown[]
}

/** A text as JSON, or a refusal. */
export type ReadJson = (text: string) => unknown

/**
 * Takes a body as it comes. As long as it equals the one before, it is only compared: a conversation
 * that was read once is not decoded and parsed again with every turn that is added to it.
 */
export class BodyReader {
  readonly #before: KnownBody | undefined
  readonly #rest: Buffer[] = []
  #same = 0
  #length = 0

  constructor(before?: KnownBody) {
    this.#before = before
  }

  get length(): number {
    return this.#length
  }

  take(chunk: Buffer): void {
    this.#length += chunk.length
    const same = this.#rest.length === 0 ? this.#sameIn(chunk) : 0
    this.#same += same
    if (same < chunk.length) this.#rest.push(same === 0 ? chunk : chunk.subarray(same))
  }

  /** The whole body as a text. */
  text(): string {
    if (this.#same === 0 && this.#rest.length === 1) return this.#rest[0]!.toString('utf8')
    const known = this.#before ? [this.#before.bytes.subarray(0, this.#same)] : []
    return Buffer.concat([...known, ...this.#rest]).toString('utf8')
  }

  /** Reads the body; `known` is what the next one can begin with, if it has such a list. */
  read(readJson: ReadJson): { readonly value: unknown; readonly known?: KnownBody } {
    const bytes = this.#whole()
    const { list, open, ends, entries } = this.#before ?? nothing
    const kept = ends.findLastIndex(end => end <= this.#same) + 1
    if (kept === 0) return readWhole(bytes, this.#length, readJson)
    const from = ends[kept - 1]!
    const head = bytes.toString('utf8', 0, open)
    // The number 0 replaces the known entries, which are put back after parsing.
    const value = readJson(`${head}0${bytes.toString('utf8', from, this.#length)}`)
    const added = (value as Readonly<Record<string, unknown>>)[list]
    if (!Array.isArray(added) || added[0] !== 0) return readWhole(bytes, this.#length, readJson)
    const all = [...entries.slice(0, kept), ...added.slice(1)]
    const found = { list, open, ends: [...ends.slice(0, kept), ...endsFrom(bytes, from)] }
    const known = { bytes, length: this.#length, ...found, entries: all }
    return { value: { ...(value as object), [list]: all }, known }
  }

  #sameIn(chunk: Buffer): number {
    if (!this.#before) return 0
    const { bytes, length } = this.#before
    const most = Math.min(chunk.length, length - this.#same)
    const start = this.#same
    if (bytes.compare(chunk, 0, most, start, start + most) === 0) return most
    let same = 0
    while (bytes[start + same] === chunk[same]) same++
    return same
  }

  /** All bytes, in the memory of the body before if there is room. */
  #whole(): Buffer {
    const before = this.#before?.bytes
    const room = before && before.length >= this.#length
    const bytes = room ? before : Buffer.allocUnsafeSlow(Math.ceil(this.#length * 1.25))
    if (before && !room) before.copy(bytes, 0, 0, this.#same)
    let at = this.#same
    for (const chunk of this.#rest) at += chunk.copy(bytes, at)
    return bytes
  }
}

const nothing = { list: '', open: 0, ends: [], entries: [] } as const

function readWhole(bytes: Buffer, length: number, readJson: ReadJson) {
  const value = readJson(bytes.toString('utf8', 0, length))
  const found = findList(bytes, length)
  const entries = found && (value as Readonly<Record<string, unknown>>)[found.list]
  if (!found || !Array.isArray(entries)) return { value }
  return { value, known: { bytes, length, ...found, ends: endsFrom(bytes, found.open), entries } }
}

/** The first list of one of the names in an object that was read. */
function findList(
  bytes: Buffer,
  length: number,
): { readonly list: string; readonly open: number } | undefined {
  let depth = 0
  for (let at = 0; at < length; at++) {
    const code = bytes[at]!
    if (code === quote) {
      const end = endOfText(bytes, at + 1)
      const open = depth === 1 ? listBehind(bytes, end + 1) : undefined
      const list = open === undefined ? '' : bytes.toString('latin1', at + 1, end)
      if (open !== undefined && listNames.includes(list)) return { list, open }
      at = end
    } else if (isOpening(code)) depth++
    else if (isClosing(code)) depth--
  }
  return undefined
}

/** Where the list after a key begins; undefined if no list follows. */
function listBehind(bytes: Buffer, from: number): number | undefined {
  const at = afterSpace(bytes, from)
  if (bytes[at] !== colon) return undefined
  const value = afterSpace(bytes, at + 1)
  return bytes[value] === openBracket ? value + 1 : undefined
}

/** Where the entries of a list end, from this place in it on; only objects and lists end by themselves. */
function endsFrom(bytes: Buffer, from: number): number[] {
  const ends: number[] = []
  let depth = 0
  for (let at = from; ; at++) {
    const code = bytes[at]!
    if (code === quote && depth > 0) at = endOfText(bytes, at + 1)
    else if (isOpening(code)) depth++
    else if (isClosing(code)) {
      if (depth === 0) return ends
      if (--depth === 0) ends.push(at + 1)
    } else if (depth === 0 && code !== comma && !isSpace(code)) return ends
  }
}

function endOfText(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}

function afterSpace(bytes: Buffer, from: number): number {
  let at = from
  while (isSpace(bytes[at]!)) at++
  return at
}

const isSpace = (code: number): boolean =>
  code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
const isOpening = (code: number): boolean => code === openBracket || code === openBrace
const isClosing = (code: number): boolean => code === openBracket + 2 || code === openBrace + 2
