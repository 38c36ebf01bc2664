import { createHash, type Hash } from 'node:crypto'
import {
  compareText,
  dumps,
  formatFloat,
  type PythonDict,
  PythonFloat,
  type PythonKey,
  type PythonValue,
  reprString,
} from '@espalier/text/python'
import { canonicalPair } from './canonical.ts'

/** A record of a table, such as one order; shared until somebody changes it. */
export type Row = PythonDict

/** The JSON of a row that is copied to be changed, pair by pair, so that unchanged pairs are not written again. */
export interface RowImage {
  readonly keys: readonly PythonKey[]
  readonly values: readonly PythonValue[]
  /** All pairs as JSON. */
  readonly text: string
  /** Where each pair begins in the text, its separator included, and where the last one ends. */
  readonly starts: readonly number[]
}

/** The image of a new row. */
export const NO_IMAGE: RowImage = { keys: [], values: [], text: '', starts: [0] }

/** The rows of one table that differ from those loaded, by id. */
export type Changes = ReadonlyMap<string, Row>

/**
 * The tables of a domain as they were loaded. Never changed: every world shares them and keeps only
 * its own changes.
 */
export class Tables {
  readonly names: readonly string[]
  readonly #rows: ReadonlyMap<string, ReadonlyMap<string, Row>>
  readonly #texts = new WeakMap<object, string>()
  readonly #rowImages = new WeakMap<Row, RowImage>()
  #images: readonly TableImage[] | undefined

  constructor(tables: ReadonlyMap<string, ReadonlyMap<string, Row>>) {
    this.#rows = tables
    this.names = [...tables.keys()].sort(compareText)
  }

  /** The rows of a table, by id, in the order of the file. */
  table(name: string): ReadonlyMap<string, Row> {
    const rows = this.#rows.get(name)
    if (rows === undefined) {
      throw new Error(`No table called "${name}". Known: ${this.names.join(', ')}.`)
    }
    return rows
  }

  /** A row as JSON; written once and remembered, its parts too, so it must never change again. */
  textOf(value: PythonValue): string {
    if (typeof value === 'string' || !isContainer(value)) return scalarText(value)
    let text = this.#texts.get(value)
    if (text === undefined) {
      text = write(value, part => this.textOf(part))
      this.#texts.set(value, text)
    }
    return text
  }

  /** What to write a copy of this row from; made once and remembered, so the row must never change. */
  rowImage(row: Row): RowImage {
    let image = this.#rowImages.get(row)
    if (image === undefined) {
      const [keys, values] = [[...row.keys()], [...row.values()]]
      const starts = [0]
      let text = ''
      keys.forEach((key, index) => {
        text += `${index > 0 ? SEPARATOR : ''}${keyText(key)}${this.textOf(values[index] ?? null)}`
        starts.push(text.length)
      })
      image = { keys, values, text, starts }
      this.#rowImages.set(row, image)
    }
    return image
  }

  /** A row that may change again, as JSON; only pairs that differ from its image are written anew. */
  textOfChanged(row: Row, image: RowImage): string {
    const { keys, values, starts } = image
    let text = '{'
    let index = 0
    /** From this pair on all equal the image so far; they are still to be copied from its text. */
    let same = 0
    row.forEach((part, key) => {
      if (keys[index] !== key || values[index] !== part) {
        if (index > same) text += image.text.slice(starts[same], starts[index])
        if (index > 0) text += SEPARATOR
        text += keyText(key) + this.#textOfChanging(part)
        same = index + 1
      }
      index++
    })
    return index > same ? `${text}${image.text.slice(starts[same], starts[index])}}` : `${text}}`
  }

  #textOfChanging(value: PythonValue): string {
    if (typeof value === 'string' || !isContainer(value)) return scalarText(value)
    return this.#texts.get(value) ?? write(value, this.#textOfPart)
  }

  readonly #textOfPart = (part: PythonValue): string => this.#textOfChanging(part)

  /** The sha256 of all tables, some rows replaced or added. */
  hash(changes: (table: string) => Changes): string {
    this.#images ??= this.names.map(name => imageOf(name, this.table(name)))
    const hash = createHash('sha256').update('(')
    this.#images.forEach((image, index) => {
      hash.update(`${index > 0 ? ', ' : ''}(${reprString(image.name)}, (`)
      const count = feedRows(hash, image, changes(image.name))
      hash.update(count === 1 ? ',))' : '))')
    })
    return hash.update(this.names.length === 1 ? ',)' : ')').digest('hex')
  }
}

function write(
  value: PythonDict | readonly PythonValue[],
  textOf: (part: PythonValue) => string,
): string {
  let text = ''
  if (value instanceof Map) {
    value.forEach((part, key) => {
      if (text !== '') text += SEPARATOR
      text += keyText(key) + textOf(part)
    })
    return `{${text}}`
  }
  for (let index = 0; index < value.length; index++) {
    if (index > 0) text += ', '
    text += textOf(value[index] as PythonValue)
  }
  return `[${text}]`
}

const keyTexts = new Map<PythonKey, string>()

/** A key with its colon; the first few hundred are cached, which is nearly all there are. */
function keyText(key: PythonKey): string {
  const known = keyTexts.get(key)
  if (known !== undefined) return known
  const text = `${scalarText(key)}: `
  if (keyTexts.size < 256) keyTexts.set(key, text)
  return text
}

const PLAIN = /^[ !#-[\]-~]*$/
const SHORT = 16

/** Whether a text needs no escapes in JSON; short ones are checked without a regular expression. */
function isPlain(text: string): boolean {
  if (text.length > SHORT) return PLAIN.test(text)
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 32 || unit > 126 || unit === 34 || unit === 92) return false
  }
  return true
}

/** A scalar as `dumps` writes it, faster for most. */
function scalarText(value: PythonValue): string {
  if (typeof value === 'string') return isPlain(value) ? `"${value}"` : dumps(value)
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  if (value instanceof PythonFloat && Number.isFinite(value.value)) return formatFloat(value.value)
  return dumps(value)
}

const isContainer = (value: PythonValue): value is PythonDict | readonly PythonValue[] =>
  value instanceof Map || Array.isArray(value)

/** A table in the text that is hashed: its pairs sorted by id, and where each begins. */
interface TableImage {
  readonly name: string
  readonly ids: readonly string[]
  readonly starts: readonly number[]
  readonly bytes: Buffer
}

const SEPARATOR = ', '

function imageOf(name: string, rows: ReadonlyMap<string, Row>): TableImage {
  const ids = [...rows.keys()].sort(compareText)
  const pairs = ids.map(id => Buffer.from(canonicalPair(id, rows.get(id) as PythonValue)))
  const starts: number[] = []
  let start = 0
  for (const pair of pairs) {
    starts.push(start)
    start += pair.length + SEPARATOR.length
  }
  starts.push(start)
  const separator = Buffer.from(SEPARATOR)
  return { name, ids, starts, bytes: Buffer.concat(pairs.flatMap(pair => [pair, separator])) }
}

/** Feeds a table's pairs to the hash, changed rows in their places, and counts them. */
function feedRows(hash: Hash, image: TableImage, changes: Changes): number {
  const { ids, starts, bytes } = image
  let position = 0
  let count = 0
  const separate = (): void => {
    if (count > 0) hash.update(SEPARATOR)
  }
  const feedUnchanged = (end: number): void => {
    if (end === position) return
    separate()
    hash.update(bytes.subarray(starts[position], (starts[end] as number) - SEPARATOR.length))
    count += end - position
  }
  for (const id of [...changes.keys()].sort(compareText)) {
    const place = firstAtLeast(ids, id)
    feedUnchanged(place)
    separate()
    hash.update(canonicalPair(id, changes.get(id) as Row))
    count++
    position = ids[place] === id ? place + 1 : place
  }
  feedUnchanged(ids.length)
  return count
}

function firstAtLeast(sorted: readonly string[], wanted: string): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (compareText(sorted[middle] as string, wanted) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** Something worked out once per set of tables and then shared, such as an index of names. */
export function perTables<T>(build: (tables: Tables) => T): (tables: Tables) => T {
  const known = new WeakMap<Tables, T>()
  return tables => {
    let value = known.get(tables)
    if (value === undefined) {
      value = build(tables)
      known.set(tables, value)
    }
    return value
  }
}
