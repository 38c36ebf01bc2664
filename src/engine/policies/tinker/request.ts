import * as zlib from 'node:zlib'
import { type Call, joinSignals } from '../../../base/core/call.ts'
import { parseBounded, readBounded } from '../../../base/core/process/bounded.ts'
import { largestAnswer } from '../transport/exchange.ts'
import { mostValues } from '../transport/reading.ts'

/** An error answer of a Tinker server. */
export class TinkerError extends Error {
  override name = 'TinkerError'
  readonly code: number

  constructor(path: string, code: number, message: string) {
    super(`${path} answered ${code}: ${message}`)
    this.code = code
  }
}

/** What is sent: an object as JSON, or a protobuf message. */
export type TinkerBody = object | { readonly protobuf: Uint8Array; readonly zstd: boolean }

/** What came back: an object from JSON, or a protobuf message. */
export type TinkerAnswer = Readonly<Record<string, unknown>> | Uint8Array

/** One request to a Tinker server. */
export interface TinkerRequest {
  readonly path: string
  readonly body?: TinkerBody
  readonly headers?: Readonly<Record<string, string>>
}

/** A long-running request. */
export interface TinkerTask {
  readonly path: string
  /** Asks for it; gives the id of the request. */
  submit(): Promise<string>
  /** Whether its result may come as protobuf. */
  readonly protobuf?: boolean
}

/** The type of protobuf messages over HTTP. */
export const protobufType = 'application/x-protobuf'

const tooLong = 2000

/** Who asks, and where. */
export interface TinkerAddress {
  /** Without a slash at its end. */
  readonly base: string
  readonly key: string | undefined
}

/** Sends one request, once. */
export async function sendTo(
  { base, key }: TinkerAddress,
  { path, body, headers }: TinkerRequest,
  { signal }: Call,
): Promise<TinkerAnswer> {
  const { request } = await import('undici')
  // Thousands of requests may share a signal; each listens through one of its own.
  const own = joinSignals([signal])
  try {
    const answer = await request(`${base}/api/v1/${path}`, {
      method: body ? 'POST' : 'GET',
      headers: {
        accept: 'application/json',
        ...(key !== undefined && { 'x-api-key': key }),
        ...(body && bodyHeaders(body)),
        ...headers,
      },
      ...(body && { body: bodyBytes(body) }),
      signal: own.signal,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const { statusCode, body: stream } = answer
    if (statusCode >= 300) throw new TinkerError(path, statusCode, errorOf(await textOf(stream)))
    if (String(answer.headers['content-type']).startsWith(protobufType))
      return await readBounded(stream, largestAnswer)
    return readJson(path, await textOf(stream))
  } finally {
    own.release()
  }
}

async function textOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  return (await readBounded(stream, largestAnswer)).toString('utf8')
}

/** The id of a request that takes long. */
export function requestId(path: string, answer: TinkerAnswer): string {
  const { request_id: id } = fieldsOf(path, answer)
  if (typeof id === 'string') return id
  throw new Error(`${path} gave no request_id`)
}

function bodyHeaders(body: TinkerBody): Record<string, string> {
  if (!('protobuf' in body)) return { 'content-type': 'application/json' }
  const isSmall = body.zstd && canCompress()
  return { 'content-type': protobufType, ...(isSmall && { 'content-encoding': 'zstd' }) }
}

function bodyBytes(body: TinkerBody): string | Uint8Array {
  if (!('protobuf' in body)) return JSON.stringify(body)
  return body.zstd && canCompress() ? compress(body.protobuf) : body.protobuf
}

type Compress = (bytes: Uint8Array) => Uint8Array

/** Node has zstd since 22.15; servers take what is not compressed as well. */
function canCompress(): boolean {
  return 'zstdCompressSync' in zlib
}

function compress(bytes: Uint8Array): Uint8Array {
  return (zlib as unknown as { zstdCompressSync: Compress }).zstdCompressSync(bytes)
}

function readJson(path: string, text: string): Readonly<Record<string, unknown>> {
  let answer: unknown
  try {
    answer = text === '' ? {} : parseBounded(text, mostValues)
  } catch (cause) {
    const why = (cause as Error).message.slice(0, 200)
    throw new TinkerError(path, 502, `no JSON (${why}): ${text.slice(0, 200)}`)
  }
  // Some calls answer null.
  return fieldsOf(path, answer ?? {})
}

function errorOf(text: string): string {
  try {
    const { error, detail, message } = parseBounded(text) as Record<string, unknown>
    const found = error ?? detail ?? message
    if (found !== undefined) return typeof found === 'string' ? found : JSON.stringify(found)
  } catch {
    // A proxy may answer with a page; its words are shown as they are.
  }
  return text.slice(0, tooLong)
}

/** The fields of an answer that has to be an object. */
export function fieldsOf(path: string, answer: unknown): Readonly<Record<string, unknown>> {
  const isObject = typeof answer === 'object' && answer !== null && !Array.isArray(answer)
  if (isObject && !(answer instanceof Uint8Array)) return answer as Record<string, unknown>
  throw new Error(`${path} gave ${JSON.stringify(answer)?.slice(0, 200)}, not an object`)
}

/** A field of an answer that has to be text. */
export function textField(path: string, answer: TinkerAnswer, name: string): string {
  const value = fieldsOf(path, answer)[name]
  if (typeof value === 'string') return value
  throw new Error(`${path} gave no ${name}: ${JSON.stringify(answer)?.slice(0, 200)}`)
}
