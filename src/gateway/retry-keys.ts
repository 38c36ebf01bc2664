import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** Bodies that are remembered per attempt: a client retries what it sent last. */
const most = 64

/**
 * Names requests so that a retry has the same name. Clients mark retries with an idempotency key or a
 * retry count; an equal body without such a mark is a new request.
 */
export class RetryKeys {
  #newest: Map<string, number> | undefined
  #count = 0

  /** The name of a request; undefined if its client does not mark retries. */
  nameOf(headers: IncomingHttpHeaders, body: unknown): string | undefined {
    const own = headers['idempotency-key']
    if (typeof own === 'string' && own !== '') return `key ${own.slice(0, 256)}`
    const retry = headers['x-stainless-retry-count']
    if (typeof retry !== 'string') return undefined
    const digest = bodyDigest(body)
    this.#newest ??= new Map()
    const known = this.#newest.get(digest)
    if (retry !== '0' && known !== undefined) return `retry ${known}`
    const name = this.#count++
    this.#newest.delete(digest)
    this.#newest.set(digest, name)
    if (this.#newest.size > most) this.#newest.delete(this.#newest.keys().next().value!)
    return `retry ${name}`
  }
}

const digests = new WeakMap<object, string>()

/** A digest of a body. Entries of its lists, such as messages, are hashed once, even if they come again. */
function bodyDigest(body: unknown): string {
  return digestOf(body, (_key, value) =>
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
