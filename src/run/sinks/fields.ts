import { isLogprob } from '../../base/core/segment.ts'

/** A value from a foreign file that is not what its format says. */
export class ReadError extends Error {
  override name = 'ReadError'
}

/** The fields of one object of a foreign file; every one is checked as it is read. */
export interface Fields {
  /** Where the object stands, for errors. */
  readonly place: string
  readonly value: Readonly<Record<string, unknown>>
  has(name: string): boolean
  text(name: string): string
  number(name: string): number
  /** A number, or `null` if there is none. */
  numberOrNull(name: string): number | null
  integer(name: string): number
  /** Token ids. */
  ids(name: string): Int32Array
  /** Log-probabilities; `null` in the list reads as NaN. */
  logprobs(name: string): Float32Array
  doubles(name: string): Float64Array
  /** A list of 0 and 1, or of false and true. */
  bits(name: string): Uint8Array
  list(name: string): readonly unknown[]
  inner(name: string): Fields
  each(name: string): readonly Fields[]
}

/** Reads an object of a foreign file. */
export function openFields(value: unknown, place: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ReadError(`${place}: expected an object, found ${describe(value)}`)
  }
  const fields = value as Readonly<Record<string, unknown>>
  const has = (name: string): boolean =>
    Object.hasOwn(fields, name) && fields[name] !== undefined && fields[name] !== null
  const fail = (name: string, wanted: string): never => {
    const found = Object.hasOwn(fields, name) ? describe(fields[name]) : 'nothing'
    throw new ReadError(`${place}: ${name} should be ${wanted}, found ${found}`)
  }
  const list = (name: string): readonly unknown[] => {
    const found = fields[name]
    return Array.isArray(found) ? found : fail(name, 'a list')
  }
  const number = (name: string): number => {
    const found = fields[name]
    return typeof found === 'number' && Number.isFinite(found) ? found : fail(name, 'a number')
  }
  const numbers = (name: string, wanted: string, isRight: (value: unknown) => boolean) => {
    const found = list(name)
    const wrong = found.findIndex(each => !isRight(each))
    if (wrong < 0) return found as readonly number[]
    throw new ReadError(
      `${place}: ${name}[${wrong}] should be ${wanted}, found ${describe(found[wrong])}`,
    )
  }
  return {
    place,
    value: fields,
    has,
    text: name => (typeof fields[name] === 'string' ? fields[name] : fail(name, 'a text')),
    number,
    numberOrNull: name => (has(name) ? number(name) : null),
    integer: name => (Number.isInteger(fields[name]) ? number(name) : fail(name, 'an integer')),
    ids: name => Int32Array.from(numbers(name, 'a token id', isTokenId)),
    logprobs: name =>
      Float32Array.from(
        numbers(name, 'a log-probability or null', isLogprobOrNull),
        each => each ?? Number.NaN,
      ),
    doubles: name => Float64Array.from(numbers(name, 'a number', each => typeof each === 'number')),
    bits: name => Uint8Array.from(numbers(name, '0 or 1', isBit), Number),
    list,
    inner: name => openFields(fields[name], `${place}: ${name}`),
    each: name => list(name).map((each, index) => openFields(each, `${place}: ${name}[${index}]`)),
  }
}

const isTokenId = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31

const isLogprobOrNull = (value: unknown): boolean =>
  value === null || (typeof value === 'number' && isLogprob(Math.fround(value)))

const isBit = (value: unknown): boolean =>
  value === 0 || value === 1 || value === false || value === true

function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object') return 'an object'
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

/** Lists that belong together have one length. */
export function checkLengths(
  place: string,
  lists: Readonly<Record<string, { readonly length: number }>>,
): void {
  const [[first, { length }], ...rest] = Object.entries(lists) as [
    [string, { length: number }],
    ...[string, { length: number }][],
  ]
  for (const [name, list] of rest) {
    if (list.length === length) continue
    throw new ReadError(`${place}: ${first} has ${length} entries but ${name} has ${list.length}`)
  }
}
