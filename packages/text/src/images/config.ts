/** What was found in a model folder's `preprocessor_config.json` and `processor_config.json`. */
export interface ImageConfigs {
  /** The parsed `preprocessor_config.json`. */
  readonly preprocessor: unknown
  /** The parsed `processor_config.json`, if the folder has one. */
  readonly processor?: unknown
}

/** Largest value that a configuration may name: beyond it a layout would be larger than any context. */
const largest = 2 ** 30

/** Reads numbers of a configuration; what is missing has the value that the processor's own code has. */
export class Config {
  readonly #values: Readonly<Record<string, unknown>>
  readonly #file: string

  constructor(file: string, value: unknown) {
    this.#file = file
    if (
      value !== undefined &&
      (typeof value !== 'object' || value === null || Array.isArray(value))
    )
      throw new TypeError(`${file}: not an object`)
    this.#values = (value ?? {}) as Record<string, unknown>
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined && this.#values[name] !== null
  }

  text(name: string, usual: string): string {
    const value = this.#values[name] ?? usual
    if (typeof value !== 'string') throw new TypeError(`${this.#file}: ${name} is not a text`)
    return value
  }

  flag(name: string, usual: boolean): boolean {
    const value = this.#values[name] ?? usual
    if (typeof value !== 'boolean')
      throw new TypeError(`${this.#file}: ${name} is neither true nor false`)
    return value
  }

  /** A whole number from 1 on; for a size, both of its sides have to agree. */
  whole(name: string, usual: number): number {
    const value = this.#values[name] ?? usual
    const sides = typeof value === 'object' && value !== null ? this.part(name) : undefined
    const number = sides ? sides.whole('height', usual) : value
    if (sides && sides.whole('width', usual) !== number)
      throw new TypeError(`${this.#file}: ${name} has sides of different lengths`)
    if (typeof number !== 'number' || !Number.isInteger(number) || number < 1 || number > largest)
      throw new RangeError(
        `${this.#file}: ${name} is ${JSON.stringify(number)}, not a whole number from 1 to ${largest}`,
      )
    return number
  }

  part(name: string): Config {
    return new Config(`${this.#file}: ${name}`, this.#values[name] ?? undefined)
  }
}
