/** A place in a header: the keys that lead there. */
export type TextPath = readonly (string | number)[]

/** Texts that are left out of a header and stored as they are: JSON takes longer to write them. */
export interface LeftOut {
  /** Each text once. */
  readonly texts: readonly string[]
  /** Where each place's text was, and which it was. */
  readonly places: readonly (readonly [path: TextPath, text: number])[]
}

/** From this many characters on, a text is stored separately. */
const longText = 400
/** The deepest level that is searched for long texts. */
const deepest = 12

/**
 * Takes long texts out of the parts of one header. A class, because one is made for every frame, and
 * closures and accessors of its own would cost more than most frames need of it.
 */
export class Lifting implements LeftOut {
  readonly texts: string[] = []
  readonly places: [TextPath, number][] = []
  private path: (string | number)[] = []
  private known: Map<string, number> | undefined

  /** The value with `null` instead of its long texts; `path` leads to it. It is not changed itself. */
  lift<Value>(value: Value, ...path: TextPath): Value {
    this.path = [...path]
    return this.left(value) as Value
  }

  private left(value: unknown): unknown {
    if (typeof value === 'string') {
      // Plain UTF-8 cannot hold lone surrogates, JSON can.
      if (value.length < longText || !value.isWellFormed()) return value
      this.places.push([[...this.path], this.numberOf(value)])
      return null
    }
    if (typeof value !== 'object' || value === null || this.path.length >= deepest) return value
    return Array.isArray(value) ? this.leftOfItems(value) : this.leftOfFields(value)
  }

  /** Most headers have one long text: it is not hashed, which takes as long as writing it. */
  private numberOf(text: string): number {
    const { texts } = this
    if (texts.length === 0) texts.push(text)
    if (texts[0] === text) return 0
    this.known ??= new Map()
    const number = this.known.get(text) ?? texts.length
    this.known.set(text, number)
    texts[number] = text
    return number
  }

  private leftOfItems(items: readonly unknown[]): readonly unknown[] {
    let copy: unknown[] | undefined
    for (let index = 0; index < items.length; index++) {
      const item = items[index]
      if (!mayHold(item)) continue
      this.path.push(index)
      const left = this.left(item)
      this.path.pop()
      if (left === item) continue
      copy ??= [...items]
      copy[index] = left
    }
    return copy ?? items
  }

  private leftOfFields(fields: object): object {
    // Objects with their own `toJSON`, such as dates, are left alone.
    if (Object.getPrototypeOf(fields) !== Object.prototype || 'toJSON' in fields) return fields
    let copy: Record<string, unknown> | undefined
    for (const key in fields) {
      const field = (fields as Record<string, unknown>)[key]
      if (!mayHold(field)) continue
      this.path.push(key)
      const left = this.left(field)
      this.path.pop()
      if (left === field) continue
      copy ??= { ...fields } as Record<string, unknown>
      copy[key] = left
    }
    return copy ?? fields
  }
}

/** Whether this is a long text, or something in which one may stand. */
export function mayHold(value: unknown): boolean {
  if (typeof value === 'string') return value.length >= longText
  return typeof value === 'object' && value !== null
}

/** Puts long texts back where they were. Throws if a place does not exist: the file may be damaged. */
export function putTexts(header: unknown, texts: readonly string[], places: unknown): unknown {
  const whole = { header }
  for (const place of listOf(places)) {
    const [path, text] = listOf(place)
    const keys = ['header', ...listOf(path)]
    let at: unknown = whole
    for (const key of keys.slice(0, -1)) at = ownOf(at, key)
    const last = keys.at(-1)
    if (ownOf(at, last) !== null) throw new TypeError('a text stands where nothing was left out')
    const put = texts[text as number]
    if (typeof put !== 'string') throw new TypeError(`there is no text ${String(text)}`)
    ;(at as Record<string, unknown>)[last as string] = put
  }
  return whole.header
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError('places of texts are not lists')
  return value
}

/** Own properties only, so that a key such as `__proto__` does no harm. */
function ownOf(value: unknown, key: unknown): unknown {
  if (typeof value === 'object' && value !== null && Object.hasOwn(value, key as PropertyKey)) {
    return (value as Record<PropertyKey, unknown>)[key as PropertyKey]
  }
  throw new TypeError(`there is no place ${String(key)}`)
}
