import { parseBounded } from '../../../base/core/process/bounded.ts'
import { excerptOf } from './exchange.ts'
import { refusal } from './refusal.ts'
import { ServerError } from './server-error.ts'

/** Values that an answer may have: 20 alternatives for each of 128 Ki tokens. */
export const mostValues = 12_000_000

/** The fields of an object that a server sent. */
export type Fields = Readonly<Record<string, unknown>>

/** No token has an id above this: ids are stored in 32 bits. */
const largestId = 2 ** 31 - 1
/** Servers write -9999 or the lowest float if they have no number for a sampled token. */
const lowestLogprob = -9000

/** The error of an answer that is not what the protocol promises. */
export function wrong(where: string, problem: string, cause?: unknown): ServerError {
  return new ServerError('answer', `${where}: ${problem}`, { cause })
}

/** Parses a body; says what it was instead of JSON. */
export function parseJson(body: Buffer | string, where: string): unknown {
  const text = typeof body === 'string' ? body : body.toString('utf8')
  try {
    return parseBounded(text, mostValues)
  } catch (cause) {
    const hint = /\b(?:NaN|Infinity)\b/.test(text)
      ? ' (it has NaN or Infinity, which JSON lacks)'
      : ''
    const begin = excerptOf(Buffer.from(text.slice(0, 1024)))
    const message = cause instanceof Error ? cause.message : String(cause)
    throw wrong(
      where,
      `the answer of ${text.length} characters is not JSON${hint}: ${message}; it begins with ${begin || 'nothing'}`,
      cause,
    )
  }
}

/** A value in a message: short, whatever it is. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value)
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

/** The value as an object; `path` names it in the error. */
export function asObject(value: unknown, where: string, path: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw wrong(where, `${path} must be an object, got ${shown(value)}`)
}

/** The value as an array. */
export function asArray(value: unknown, where: string, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw wrong(where, `${path} must be an array, got ${shown(value)}`)
}

/** The value as a text. */
export function asText(value: unknown, where: string, path: string): string {
  if (typeof value === 'string') return value
  throw wrong(where, `${path} must be a string, got ${shown(value)}`)
}

/** The value as a count; undefined if the server did not send it. */
export function asCount(value: unknown, where: string, path: string): number | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw wrong(where, `${path} must be a whole number of 0 or more, got ${shown(value)}`)
}

/** Whether a value can be a token id. */
export function isId(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= largestId && Number.isInteger(value)
}

/** Whether a value can be the log-probability of a sampled token. */
export function isLogprob(value: unknown): value is number {
  return typeof value === 'number' && value <= 1e-3 && value > lowestLogprob
}

/** The value as token ids. */
export function asIds(value: unknown, where: string, path: string): Int32Array {
  const list = asArray(value, where, path)
  const ids = new Int32Array(list.length)
  for (let index = 0; index < list.length; index++) {
    const id = list[index]
    if (!isId(id)) throw wrong(where, `${path}[${index}] must be a token id, got ${shown(id)}`)
    ids[index] = id
  }
  return ids
}

/** The error for a value that is not a log-probability. */
export function wrongLogprob(where: string, path: string, value: unknown): ServerError {
  return wrong(where, `${path} must be the log-probability of a sampled token, got ${shown(value)}`)
}

/** Throws if the server reports fewer prompt tokens than were sent: the sample would not continue our path. */
export function checkPromptCount(counted: number | undefined, sent: number, where: string): void {
  if (counted === undefined || counted === 0 || counted >= sent) return
  throw wrong(where, `the server read ${counted} prompt tokens where ${sent} were sent`)
}

/** Throws for tokens that cannot be scored: the first one, and those beyond the end. */
export function checkScored(from: number, length: number): void {
  if (Number.isInteger(from) && from >= 1 && from <= length) return
  throw new RangeError(`Scoring ${length} tokens must begin at place 1 to ${length}, got ${from}.`)
}

/** The error that a server reports within a stream, after its status was sent. */
export function eventError(error: unknown, where: string): Error {
  const { message, code } = asObject(error, where, 'error')
  const status = typeof code === 'number' ? { status: code } : {}
  const said = `${where} answered an error in its stream: ${shown(message)}`
  return refusal(said, String(message), status)
}
