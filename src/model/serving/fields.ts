/** A request that cannot be answered: status 400, with words for whoever sent it. */
export class BadRequest extends Error {
  override name = 'BadRequest'
  readonly statusCode = 400
}

/** Fields of a request's body. */
export type Fields = Readonly<Record<string, unknown>>

/** A JSON object, or a refusal that names it. */
export function toFields(value: unknown, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw new BadRequest(`${what} must be a JSON object`)
}

/** A number in a range; null and absent mean the default. */
export function numberIn<Default>(
  fields: Fields,
  name: string,
  options: {
    readonly otherwise: Default
    readonly low: number
    readonly high?: number
    readonly whole?: boolean
  },
): number | Default {
  const value = fields[name]
  if (value === undefined || value === null) return options.otherwise
  const { low, high = Number.POSITIVE_INFINITY, whole = false } = options
  const isGood =
    typeof value === 'number' &&
    value >= low &&
    value <= high &&
    (!whole || Number.isSafeInteger(value))
  if (isGood) return value
  const kind = whole ? 'a whole number' : 'a number'
  throw new BadRequest(`${name} must be ${kind} from ${low} to ${high}, got ${short(value)}`)
}

/** A switch; null and absent mean the default. */
export function flagIn(fields: Fields, name: string, otherwise = false): boolean {
  const value = fields[name]
  if (value === undefined || value === null) return otherwise
  if (typeof value === 'boolean') return value
  throw new BadRequest(`${name} must be true or false, got ${short(value)}`)
}

/** A text; null and absent mean there is none. */
export function textIn(fields: Fields, name: string): string | undefined {
  const value = fields[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string') return value
  throw new BadRequest(`${name} must be a text, got ${short(value)}`)
}

/** One text or several. */
export function textsIn(fields: Fields, name: string): readonly string[] {
  const value = fields[name]
  if (value === undefined || value === null) return []
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (list.every((each): each is string => typeof each === 'string')) {
    return list.filter(each => each !== '')
  }
  throw new BadRequest(`${name} must be a text or a list of texts, got ${short(value)}`)
}

/** Token ids; they must be in the vocabulary. */
export function toIds(value: unknown, name: string, vocabulary: number): Int32Array {
  if (!Array.isArray(value)) throw new BadRequest(`${name} must be a list of token ids`)
  const wrong = value.findIndex(id => !Number.isInteger(id) || id < 0 || id >= vocabulary)
  if (wrong < 0) return Int32Array.from(value as number[])
  throw new BadRequest(
    `${name}[${wrong}] is ${short(value[wrong])}; ids are whole numbers from 0 to ${vocabulary - 1}`,
  )
}

/** Refuses fields that would change the answer and that the embedded model cannot honour. */
export function refuseFields(fields: Fields, neutral: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(neutral)) {
    const given = fields[name]
    if (given === undefined || given === null || given === value) continue
    throw new BadRequest(`${name} is not possible with an embedded model, got ${short(given)}`)
  }
}

function short(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 100)
}
