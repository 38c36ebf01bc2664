import { requireHashable } from '../../python/compare.ts'
import { PythonError } from '../../python/error.ts'
import { dumps } from '../../python/json.ts'
import { repr } from '../../python/repr.ts'
import type { PythonValue } from '../../python/value.ts'
import { canonical } from './canonical.ts'
import { copyDict } from './operations.ts'
import type { Changes, Row, Tables } from './tables.ts'

const NO_CHANGES: Changes = new Map()

/**
 * The database of one world: the shared tables seen through the world's own changes. Opening one
 * costs nothing, changing a row costs a copy of that row, forking costs the list of changed rows.
 */
export class Database {
  readonly tables: Tables
  readonly #changes: Map<string, Map<string, Row>>
  /** Changed rows that no other database can see, which may be changed in place. */
  #owned = new Set<Row>()

  constructor(tables: Tables, changes: Map<string, Map<string, Row>> = new Map()) {
    this.tables = tables
    this.#changes = changes
  }

  /** The row of that id, which may be any value a policy sent; what cannot be hashed raises. */
  find(table: string, id: PythonValue): Row | undefined {
    const key = requireHashable(id)
    if (typeof key !== 'string') return undefined
    return this.#changes.get(table)?.get(key) ?? this.tables.table(table).get(key)
  }

  /** The row of that id, or Python's `KeyError`. */
  at(table: string, id: PythonValue): Row {
    const row = this.find(table, id)
    if (row === undefined) throw new PythonError('KeyError', repr(id))
    return row
  }

  /** The row of that id as a copy of this database's own, to be changed in place. */
  change(table: string, id: PythonValue): Row {
    const row = this.at(table, id)
    if (this.#owned.has(row)) return row
    const copied = copyDict(row)
    this.insert(table, id as string, copied)
    return copied
  }

  /** Puts a row, which from now on belongs to this database. */
  insert(table: string, id: string, row: Row): void {
    let changed = this.#changes.get(table)
    if (changed === undefined) {
      changed = new Map()
      this.#changes.set(table, changed)
    }
    changed.set(id, row)
    this.#owned.add(row)
  }

  /** A row as JSON. */
  textOf(table: string, id: string): string {
    const changed = this.#changes.get(table)?.get(id)
    return changed ? dumps(changed) : this.tables.textOf(this.at(table, id))
  }

  /** A database with the same rows that goes its own way from here. */
  fork(): Database {
    const changes = new Map<string, Map<string, Row>>()
    for (const [table, rows] of this.#changes) changes.set(table, new Map(rows))
    // From now on the changed rows are seen by two, so both copy before they change one again.
    this.#owned = new Set()
    return new Database(this.tables, changes)
  }

  /** tau-bench's hash of the whole database. */
  hash(): string {
    return this.tables.hash(table => this.#changes.get(table) ?? NO_CHANGES)
  }

  /** Whether both hold the same rows: equality of the hashes, found from the changed rows alone. */
  equals(other: Database): boolean {
    const changed = new Set([...this.#changedKeys(), ...other.#changedKeys()])
    for (const key of changed) {
      const [table = '', id = ''] = key.split(KEY_SEPARATOR)
      const [mine, theirs] = [this.find(table, id), other.find(table, id)]
      if (mine === theirs) continue
      if (!mine || !theirs || canonical(mine) !== canonical(theirs)) return false
    }
    return true
  }

  *#changedKeys(): Generator<string> {
    for (const [table, rows] of this.#changes) {
      for (const id of rows.keys()) yield `${table}${KEY_SEPARATOR}${id}`
    }
  }
}

const KEY_SEPARATOR = '\n'
