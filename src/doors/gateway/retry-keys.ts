import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { RequestProblem } from '../../engine/capture/dialects/problem.ts'

/** A request of an attempt, as far as a retry repeats it. */
export interface Retried {
  readonly method: string
  /** The path as its dialect has it. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: unknown
}

/** Requests that are remembered per attempt: a client retries what it sent last. */
const mostRequests = 64

/** Idempotency keys that are remembered per attempt, with what was asked under them. */
const mostKeys = 4096

/**
 * Names requests so that a retry has the same name. Clients mark retries with an idempotency key or a
 * retry count; an equal request without such a mark is a new one.
 */
export class RetryKeys {
  /** What was asked under each idempotency key. */
  #asked: Map<string, string> | undefined
  #newest: Map<string, number> | undefined
  #count = 0

  /** The name of a request; undefined if its client does not mark retries. */
  nameOf(request: Retried): string | undefined {
    const { 'idempotency-key': key, 'x-stainless-retry-count': retry } = request.headers
    if (typeof key === 'string' && key !== '') return this.#keyed(key, requestDigest(request))
    return typeof retry === 'string' ? this.#counted(retry, requestDigest(request)) : undefined
  }

  /** A key that comes again with another request is a mistake of the client: it would get a wrong answer. */
  #keyed(key: string, digest: string): string {
    this.#asked ??= new Map()
    const known = this.#asked.get(key)
    if (known !== undefined && known !== digest) {
      throw new RequestProblem(
        'conflict',
        'this idempotency-key came before, with another request; a new request needs a new key',
      )
    }
    remember(this.#asked, [key, digest], mostKeys)
    return `key ${digest} ${key}`
  }

  #counted(retry: string, digest: string): string {
    this.#newest ??= new Map()
    const known = this.#newest.get(digest)
    if (retry !== '0' && known !== undefined) return `retry ${known}`
    const name = this.#count++
    remember(this.#newest, [digest, name], mostRequests)
    return `retry ${name}`
  }
}

/** Puts an entry at the end of a map, and lets go of the oldest if there are too many. */
function remember<T>(map: Map<string, T>, [key, value]: [string, T], most: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > most) map.delete(map.keys().next().value!)
}

const digests = new WeakMap<object, string>()

/** A digest of what is asked. Entries of the body's lists, such as messages, are hashed once, even if they come again. */
function requestDigest({ method, path, body }: Retried): string {
  return digestOf({ method, path, body }, (_key, value) =>
    Array.isArray(value) && value.length > 0 ? value.map(entryDigest) : value,
  )
}

function entryDigest(entry: unknown): unknown {
  if (typeof entry !== 'object' || entry === null) return entry
  const known = digests.get(entry) ?? digestOf(entry)
  digests.set(entry, known)
  return known
}

function digestOf(value: unknown, replace?: (key: string, value: unknown) => unknown): string {
  return hash('sha1', JSON.stringify(value, replace) ?? '', 'base64')
}
