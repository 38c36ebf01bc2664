import { createHash } from 'node:crypto'
import { compareText, dumps, encodeAscii, PythonFloat } from '@espalier/text/python'
import { str } from './program/show.ts'
import {
  type Dict,
  Instance,
  type ProgramClass,
  ProgramObject,
  PythonTuple,
  plain,
  unwrap,
  type Value,
} from './program/values.ts'
import type { Mutable, Versions } from './program/versions.ts'

/** A value as the original hashes it: keys sorted, dates and other objects by their text. */
export function canonicalText(value: Value): string {
  const known = unwrap(value)
  if (typeof known === 'string') return encodeAscii(known)
  if (typeof known !== 'object' || known === null || known instanceof PythonFloat)
    return dumps(plain(known))
  if (Array.isArray(known)) return `[${known.map(canonicalText).join(', ')}]`
  if (known instanceof PythonTuple) return `[${known.items.map(canonicalText).join(', ')}]`
  if (known instanceof Map) return canonicalPairs(known)
  if (known instanceof Instance && known.class.kind === 'model') return canonicalModel(known)
  return known instanceof ProgramObject ? encodeAscii(str(known)) : dumps(plain(known))
}

const fieldOrders = new WeakMap<ProgramClass, readonly (readonly [string, string])[]>()

/** The fields of a model in the order of their names, each with its name as JSON. */
function fieldOrder({ class: of, fields }: Instance): readonly (readonly [string, string])[] {
  let order = fieldOrders.get(of)
  if (order === undefined) {
    order = [...fields.keys()].sort(compareText).map(name => [name, `${encodeAscii(name)}: `])
    fieldOrders.set(of, order)
  }
  return order
}

function canonicalModel(model: Instance): string {
  let text = ''
  for (const [name, key] of fieldOrder(model)) {
    text += `${text === '' ? '{' : ', '}${key}${canonicalText(model.fields.get(name) as Value)}`
  }
  return text === '' ? '{}' : `${text}}`
}

function canonicalPairs(pairs: ReadonlyMap<Value, Value>): string {
  const written: (readonly [string, string])[] = []
  for (const [key, value] of pairs) written.push([keyText(key), canonicalText(value)])
  written.sort(([left], [right]) => compareText(left, right))
  return `{${written.map(([key, text]) => `${encodeAscii(key)}: ${text}`).join(', ')}}`
}

function keyText(key: Value): string {
  const known = unwrap(key)
  return typeof known === 'string' ? known : dumps(plain(known))
}

/** The records of a table of a database, or `undefined` if it is one record as a whole. */
function recordsOf(table: Value): Dict | undefined {
  if (table instanceof Map) return table
  const data = table instanceof Instance ? table.fields.get('data') : undefined
  return data instanceof Map ? data : undefined
}

/** What was loaded: each record with the objects that belong to it, and its text. */
interface TableImage {
  readonly table: Value
  readonly records: ReadonlyMap<Value, Value> | undefined
  readonly texts: Map<Value, string>
}

/** The key of a table that is a single record. */
const WHOLE = ''

/**
 * A database as it was loaded, record by record, so that the hash of a changed one writes again only
 * what was changed, and two states are compared by that alone.
 */
export class DatabaseImage {
  readonly #tables: ReadonlyMap<string, TableImage>
  readonly #loaded = new Map<string, string | null>()
  /** The table and the key of the record that an object belongs to. */
  readonly #places = new Map<Mutable, readonly [string, Value]>()

  constructor(database: Instance) {
    const tables = new Map<string, TableImage>()
    for (const [name, table] of database.fields) {
      const records = recordsOf(table)
      tables.set(name, { table, records: records && new Map(records), texts: new Map() })
      if (records) for (const [key, record] of records) this.#place(record, [name, key])
      else this.#place(table, [name, WHOLE])
    }
    this.#tables = tables
  }

  #place(value: Value, place: readonly [string, Value]): void {
    const pending: Value[] = [value]
    while (pending.length > 0) {
      const object = pending.pop() as Value
      if (Array.isArray(object)) pending.push(...object)
      else if (object instanceof Map) pending.push(...object.values())
      else if (object instanceof Instance) pending.push(...object.fields.values())
      else continue
      this.#places.set(object, place)
    }
  }

  /** The original's hash of the database as the state in force has it. */
  hash(database: Instance, changed: ReadonlySet<Mutable>): string {
    return createHash('sha256').update(this.text(database, changed), 'utf8').digest('hex')
  }

  /** What is hashed. */
  text(database: Instance, changed: ReadonlySet<Mutable>): string {
    const dirty = this.#dirty(changed)
    const names = [...database.fields.keys()].sort(compareText)
    const tables = names.map(
      name => `${encodeAscii(name)}: ${this.#tableText(name, database, dirty)}`,
    )
    return `{${tables.join(', ')}}`
  }

  #dirty(changed: ReadonlySet<Mutable>): ReadonlyMap<string, ReadonlySet<Value>> {
    const dirty = new Map<string, Set<Value>>()
    for (const object of changed) {
      const place = this.#places.get(object)
      if (place === undefined) continue
      const [name, key] = place
      const keys = dirty.get(name) ?? new Set()
      dirty.set(name, keys.add(key))
    }
    return dirty
  }

  #tableText(
    name: string,
    database: Instance,
    dirty: ReadonlyMap<string, ReadonlySet<Value>>,
  ): string {
    const table = database.fields.get(name) as Value
    const records = recordsOf(table)
    const keys = dirty.get(name)
    if (records === undefined)
      return this.#recordText(name, WHOLE, { record: table, isDirty: keys !== undefined })
    const sorted = [...records.keys()].sort((left, right) =>
      compareText(keyText(left), keyText(right)),
    )
    const pairs = sorted.map(key => {
      const isDirty = keys?.has(key) ?? false
      return `${encodeAscii(keyText(key))}: ${this.#recordText(name, key, { record: records.get(key) as Value, isDirty })}`
    })
    const text = `{${pairs.join(', ')}}`
    return table instanceof Instance ? `{"data": ${text}${restOf(table)}}` : text
  }

  /** The text of a record; that of one as loaded is kept. */
  #recordText(
    name: string,
    key: Value,
    { record, isDirty }: { readonly record: Value; readonly isDirty: boolean },
  ): string {
    const image = this.#tables.get(name)
    const loaded = key === WHOLE ? image?.table : image?.records?.get(key)
    if (image === undefined || isDirty || loaded !== record) return canonicalText(record)
    let text = image.texts.get(key)
    if (text === undefined) {
      text = canonicalText(record)
      image.texts.set(key, text)
    }
    return text
  }

  /** The records that differ from those loaded, as texts; `null` for one that is gone. */
  differences(
    database: Instance,
    changed: ReadonlySet<Mutable>,
  ): ReadonlyMap<string, string | null> {
    const found = new Map<string, string | null>()
    const dirty = this.#dirty(changed)
    for (const [name, table] of database.fields) {
      const image = this.#tables.get(name)
      const records = recordsOf(table)
      if (records === undefined || image?.records === undefined) {
        if (dirty.has(name) || image?.table !== table) found.set(name, canonicalText(table))
        continue
      }
      const isListed = changed.has(records) || recordsOf(image.table) !== records
      for (const key of isListed
        ? new Set([...records.keys(), ...image.records.keys()])
        : (dirty.get(name) ?? [])) {
        this.#compareRecord(found, {
          name,
          key,
          record: records.get(key),
          isDirty: dirty.get(name)?.has(key) ?? false,
        })
      }
      if (table instanceof Instance && changed.has(table)) found.set(`${name}\n`, restOf(table))
    }
    return found
  }

  #compareRecord(
    found: Map<string, string | null>,
    {
      name,
      key,
      record,
      isDirty,
    }: {
      readonly name: string
      readonly key: Value
      readonly record: Value | undefined
      readonly isDirty: boolean
    },
  ): void {
    const loaded = this.#tables.get(name)?.records?.get(key)
    if (record === loaded && !isDirty) return
    found.set(`${name}\n${keyText(key)}`, record === undefined ? null : canonicalText(record))
  }

  /** Whether the text of a record as it was loaded is known already. */
  isKnown(place: string): boolean {
    return this.#loaded.has(place)
  }

  /** The text of a record as it was loaded; `null` if there was none. First asked for in the root state. */
  loadedText(place: string): string | null {
    let text = this.#loaded.get(place)
    if (text === undefined) {
      text = this.#loadedText(place)
      this.#loaded.set(place, text)
    }
    return text
  }

  #loadedText(place: string): string | null {
    const [name = '', ...rest] = place.split('\n')
    const image = this.#tables.get(name)
    if (rest.length === 0) return image ? canonicalText(image.table) : null
    const key = rest.join('\n')
    const record = image?.records?.get(key)
    if (key === '' && image?.table instanceof Instance) return restOf(image.table)
    return record === undefined ? null : canonicalText(record)
  }
}

/** The fields of a table beside its records. */
function restOf(table: Instance): string {
  const rest = [...table.fields].filter(([name]) => name !== 'data')
  return rest.map(([name, value]) => `, ${encodeAscii(name)}: ${canonicalText(value)}`).join('')
}

/** Whether two states of a database hold the same, found from what they changed alone. */
export function isSameState(
  image: DatabaseImage,
  versions: Versions,
  [left, right]: readonly [ReadonlyMap<string, string | null>, ReadonlyMap<string, string | null>],
): boolean {
  const places = [...new Set([...left.keys(), ...right.keys()])]
  const alone = places.filter(place => left.has(place) !== right.has(place))
  const unknown = alone.filter(place => !image.isKnown(place))
  if (unknown.length > 0) {
    versions.within(versions.root, () => {
      for (const place of unknown) image.loadedText(place)
    })
  }
  const textIn = (
    side: ReadonlyMap<string, string | null>,
    place: string,
  ): string | null | undefined => (side.has(place) ? side.get(place) : image.loadedText(place))
  return places.every(place => textIn(left, place) === textIn(right, place))
}
