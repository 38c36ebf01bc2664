import { RequestProblem } from './problem.ts'

/** The fields of a JSON object. */
export type Fields = Readonly<Record<string, unknown>>

/** Deeper JSON than this is refused: nobody writes it by hand, and it costs stack to walk. */
const deepest = 100

/** Refuses a field. */
export function refuse(place: string, problem: string): never {
  throw new RequestProblem('invalid', `${place} ${problem}`, place)
}

/** Refuses something that the dialect has and this server does not support. */
export function refuseUnsupported(place: string, problem: string): never {
  throw new RequestProblem('unsupported', `${place} ${problem}`, place)
}

/** A JSON object, or a refusal that names its place. */
export function toFields(value: unknown, place: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  return refuse(place, `must be a JSON object, got ${short(value)}`)
}

/** A field that is an object; null and absent mean there is none. */
export function fieldsIn(fields: Fields, name: string, at = ''): Fields | undefined {
  const value = fields[name]
  return isAbsent(value) ? undefined : toFields(value, join(at, name))
}

/** A number in a range; null and absent mean there is none. */
export function numberIn(fields: Fields, name: string, range: Range): number | undefined {
  const value = fields[name]
  if (isAbsent(value)) return undefined
  const { low, high = Number.POSITIVE_INFINITY, whole = false, at = '' } = range
  const isGood =
    typeof value === 'number' &&
    value >= low &&
    value <= high &&
    (!whole || Number.isSafeInteger(value))
  if (isGood) return value
  const kind = whole ? 'a whole number' : 'a number'
  const bounds = high === Number.POSITIVE_INFINITY ? `from ${low} on` : `from ${low} to ${high}`
  return refuse(join(at, name), `must be ${kind} ${bounds}, got ${short(value)}`)
}

/** What a number may be, and where its object stands. */
export interface Range {
  readonly low: number
  readonly high?: number
  readonly whole?: boolean
  readonly at?: string
}

/** A switch; null and absent mean there is none. */
export function flagIn(fields: Fields, name: string, at = ''): boolean | undefined {
  const value = fields[name]
  if (isAbsent(value)) return undefined
  if (typeof value === 'boolean') return value
  return refuse(join(at, name), `must be true or false, got ${short(value)}`)
}

/** A text; null and absent mean there is none. */
export function textIn(fields: Fields, name: string, at = ''): string | undefined {
  const value = fields[name]
  if (isAbsent(value)) return undefined
  if (typeof value === 'string') return value
  return refuse(join(at, name), `must be a text, got ${short(value)}`)
}

/** A text that is required. */
export function neededTextIn(fields: Fields, name: string, at = ''): string {
  return textIn(fields, name, at) ?? refuse(join(at, name), 'is missing')
}

/** A list of at most so many; null and absent mean there is none. */
export function listIn(
  fields: Fields,
  name: string,
  options: { readonly most: number; readonly at?: string },
): readonly unknown[] | undefined {
  const value = fields[name]
  if (isAbsent(value)) return undefined
  const place = join(options.at ?? '', name)
  if (!Array.isArray(value)) return refuse(place, `must be a list, got ${short(value)}`)
  if (value.length <= options.most) return value
  return refuse(place, `has ${value.length} entries; at most ${options.most} are taken`)
}

/** One text or several, empty ones left out; at most 16. */
export function textsIn(fields: Fields, name: string, at = ''): readonly string[] | undefined {
  const value = fields[name]
  if (isAbsent(value)) return undefined
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  const place = join(at, name)
  if (list.length > 16) return refuse(place, `has ${list.length} entries; at most 16 are taken`)
  if (list.every((each): each is string => typeof each === 'string')) {
    return list.filter(each => each !== '')
  }
  return refuse(place, `must be a text or a list of texts, got ${short(value)}`)
}

/** Any JSON no deeper than `deepest`. */
export function boundedJson<T>(value: T, place: string): T {
  if (depthOf(value, 0) > deepest) refuse(place, `is deeper than ${deepest} levels`)
  return value
}

function depthOf(value: unknown, depth: number): number {
  if (typeof value !== 'object' || value === null || depth > deepest) return depth
  let most = depth
  for (const each of Object.values(value)) most = Math.max(most, depthOf(each, depth + 1))
  return most
}

/** Refuses fields that would change the answer and that cannot be honoured, unless they are neutral. */
export function refuseUnlessNeutral(fields: Fields, neutral: Fields, at = ''): void {
  for (const name in neutral) {
    const given = fields[name]
    if (isAbsent(given) || given === neutral[name] || isEmpty(given)) continue
    refuseUnsupported(join(at, name), `is not possible here, got ${short(given)}; leave it out`)
  }
}

/** The fields that have a value. */
export function defined<T extends object>(
  values: T,
): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  const kept: Partial<T> = {}
  for (const name in values) {
    if (values[name] !== undefined) kept[name] = values[name]
  }
  return kept as { [Name in keyof T]: Exclude<T[Name], undefined> }
}

/** The place of a field. */
export function join(at: string, name: string): string {
  return at === '' ? name : `${at}.${name}`
}

/** A value for a message, cut short. */
export function short(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80))
  if (typeof value !== 'object' || value === null) return String(value)
  return Array.isArray(value) ? `a list of ${value.length}` : 'an object'
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}
