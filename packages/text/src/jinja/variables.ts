import { fromJavaScript } from '../python/value.ts'
import { holdsForeign } from './foreign.ts'
import { GLOBALS } from './globals.ts'
import { TemplateText } from './template-text.ts'
import type { Value } from './value.ts'

/** What a template is given: by name, as values of templates or as plain JavaScript data. */
export type GivenVariables = ReadonlyMap<string, Value> | Readonly<Record<string, unknown>>

/** The variables of one rendering. Each becomes a value of templates when it is first asked for. */
export class Variables {
  /** Whether any value asked for so far holds characters from outside. */
  foreign = false
  readonly #given: GivenVariables
  readonly #values = new Map<string, Value | undefined>()

  constructor(given: GivenVariables) {
    this.#given = given
  }

  /** The value of a name that was given one or that every template knows. */
  get(name: string): Value | undefined {
    const known = this.#values.get(name)
    if (known !== undefined || this.#values.has(name)) return known
    const given = this.#given instanceof Map ? this.#read(this.#given, name) : this.#convert(name)
    const value = given === undefined ? GLOBALS.get(name) : given
    this.#values.set(name, value)
    return value
  }

  /** Tells of a value that has no plain form whether it may stay, and notes where it came from. */
  keep(value: object): boolean {
    if (!(value instanceof TemplateText)) return false
    if (value.foreign.length > 0) this.foreign = true
    return true
  }

  #read(given: ReadonlyMap<string, Value>, name: string): Value | undefined {
    const value = given.get(name)
    if (value !== undefined && !this.foreign) this.foreign = holdsForeign(value)
    return value
  }

  #convert(name: string): Value | undefined {
    const given = this.#given as Readonly<Record<string, unknown>>
    const value = Object.hasOwn(given, name) ? given[name] : undefined
    return value === undefined ? undefined : (fromJavaScript(value, this) as Value)
  }
}
