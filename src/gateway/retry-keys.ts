import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** Bodies that are remembered per attempt: a client retries what it sent last. */
const most = 64

/**
 * Names requests so that a retry has the name of what it repeats. Clients say so with a key of their
 * own, or count their retries; a body that comes again without that is another request.
 */
export class RetryKeys {
  readonly #newest = new Map<string, number>()
  #count = 0

  /** The name of a request; nothing where its client tells nothing of retries. */
  nameOf(headers: IncomingHttpHeaders, body: unknown): string | undefined {
    const own = headers['idempotency-key']
    if (typeof own === 'string' && own !== '') return `key ${own.slice(0, 256)}`
    const retry = headers['x-stainless-retry-count']
    if (typeof retry !== 'string') return undefined
    const digest = createHash('sha1')
      .update(JSON.stringify(body) ?? '')
      .digest('base64')
    const known = this.#newest.get(digest)
    if (retry !== '0' && known !== undefined) return `retry ${known}`
    const name = this.#count++
    this.#newest.delete(digest)
    this.#newest.set(digest, name)
    if (this.#newest.size > most) this.#newest.delete(this.#newest.keys().next().value!)
    return `retry ${name}`
  }
}
