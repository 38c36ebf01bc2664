import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import type { Call } from '../../core/call.ts'

/** What a Tinker server answered instead of doing what was asked. */
export class TinkerError extends Error {
  override name = 'TinkerError'
  readonly code: number

  constructor(path: string, code: number, message: string) {
    super(`${path} answered ${code}: ${message}`)
    this.code = code
  }
}

/**
 * Requests to a server that speaks Tinker's API (paths and shapes of the published SDK 0.36 and of
 * SkyRL's server at a956457, which takes and gives JSON).
 */
export interface TinkerApi {
  get(path: string, call: Call): Promise<unknown>
  post(path: string, body: object, call: Call): Promise<unknown>
  /** Sends what takes long, and asks for its result until it is there. */
  result(path: string, body: object, call: Call): Promise<unknown>
}

/** Where the API is, and who asks. */
export interface TinkerApiOptions {
  readonly key?: string
  /** How often a request is tried again that failed for no fault of its own. @default 5 */
  readonly retries?: number
}

/** Codes that mean: later. */
const passing = [408, 425, 429, 502, 503, 504]
const tooLong = 2000

/** Opens the API at a URL. */
export function openTinkerApi(url: string, options: TinkerApiOptions = {}): TinkerApi {
  const { key, retries = 5 } = options
  const base = url.replace(/\/+$/, '')

  async function once(path: string, body: object | undefined, { signal }: Call) {
    const { statusCode, body: stream } = await request(`${base}/api/v1/${path}`, {
      method: body ? 'POST' : 'GET',
      headers: {
        accept: 'application/json',
        ...(body && { 'content-type': 'application/json' }),
        ...(key !== undefined && { 'x-api-key': key }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const text = await stream.text()
    if (statusCode < 300) return readJson(path, text)
    throw new TinkerError(path, statusCode, errorOf(text))
  }

  async function tried(path: string, body: object | undefined, call: Call): Promise<unknown> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await once(path, body, call)
      } catch (error) {
        call.signal.throwIfAborted()
        const isPassing = !(error instanceof TinkerError) || passing.includes(error.code)
        if (!isPassing || attempt >= retries) throw error
        await sleep(Math.min(10_000, 200 * 2 ** attempt), undefined, { signal: call.signal })
      }
    }
  }

  return {
    get: (path, call) => tried(path, undefined, call),
    post: (path, body, call) => tried(path, body, call),
    async result(path, body, call) {
      const { request_id } = fieldsOf(path, await tried(path, body, call))
      if (typeof request_id !== 'string') throw new Error(`${path} gave no request_id`)
      return await retrieve(once, { path, id: request_id }, call)
    },
  }
}

/** A future is asked for again while it is pending: the server holds each question for a while. */
async function retrieve(
  once: (path: string, body: object, call: Call) => Promise<unknown>,
  { path, id }: { readonly path: string; readonly id: string },
  call: Call,
): Promise<unknown> {
  for (;;) {
    call.signal.throwIfAborted()
    try {
      const answer = await once('retrieve_future', { request_id: id }, call)
      const fields = fieldsOf('retrieve_future', answer)
      if (typeof fields.error === 'string') throw new TinkerError(path, 400, fields.error)
      if (fields.type !== 'try_again') return answer
      await sleep(50, undefined, { signal: call.signal })
    } catch (error) {
      if (!(error instanceof TinkerError) || error.code !== 408) throw error
    }
  }
}

function readJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error(`${path} gave no JSON: ${text.slice(0, 200)}`, { cause })
  }
}

function errorOf(text: string): string {
  try {
    const { error, detail, message } = JSON.parse(text) as Record<string, unknown>
    const found = error ?? detail ?? message
    if (found !== undefined) return typeof found === 'string' ? found : JSON.stringify(found)
  } catch {
    // A proxy may answer with a page; its words are shown as they are.
  }
  return text.slice(0, tooLong)
}

/** The fields of an answer that has to be an object. */
export function fieldsOf(path: string, answer: unknown): Readonly<Record<string, unknown>> {
  if (typeof answer === 'object' && answer !== null && !Array.isArray(answer)) {
    return answer as Record<string, unknown>
  }
  throw new Error(`${path} gave ${JSON.stringify(answer)?.slice(0, 200)}, not an object`)
}
