import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { sglangAnswer } from '../fixed-server.ts'

/** How a router chooses a replica: by the session that a request names, or in turn. */
export type Routing = 'session' | 'turn'

/** What replicas had to compute, in tokens. */
export interface Hits {
  readonly prompt: number
  /** Tokens that the replica had, and those that it could have had if every session had stayed in one place. */
  readonly cached: number
  readonly ceiling: number
}

/** Tokens of a block, as servers cache them. */
const block = 16

/**
 * A prefix cache as servers have it: whole blocks, each known by all tokens up to its end, the ones used longest
 * ago given up first.
 */
export class PrefixCache {
  readonly #blocks = new Map<string, true>()
  readonly #most: number

  constructor(tokens: number) {
    this.#most = Math.floor(tokens / block)
  }

  /** Takes a sequence in; gives how many of its tokens were there. */
  take(ids: readonly number[]): number {
    const hash = createHash('sha1')
    let found = 0
    let isPrefix = true
    for (let end = block; end <= ids.length; end += block) {
      hash.update(Int32Array.from(ids.slice(end - block, end)))
      const key = hash.copy().digest('base64')
      isPrefix &&= this.#blocks.delete(key)
      if (isPrefix) found = end
      this.#blocks.set(key, true)
    }
    for (const key of this.#blocks.keys()) {
      if (this.#blocks.size <= this.#most) break
      this.#blocks.delete(key)
    }
    return found
  }
}

/** Replicas of a model behind a router, with SGLang's protocol; each answers with a call until it reads `LAST`. */
export async function openReplicas(
  count: number,
  { routing, tokens }: { readonly routing: Routing; readonly tokens: number },
) {
  const replicas = Array.from({ length: count }, () => new PrefixCache(tokens))
  const ideal = new PrefixCache(Number.POSITIVE_INFINITY)
  const hits = { prompt: 0, cached: 0, ceiling: 0 }
  let turn = 0
  const choose = (session: string): number => {
    if (routing === 'turn') return turn++ % count
    return createHash('sha1').update(session).digest().readUInt32LE() % count
  }
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const { input_ids: ids = [] } = (body ? JSON.parse(body) : {}) as { input_ids?: number[] }
    const answer = answerOfSession(ids)
    if (request.url === '/generate' && ids.length > 0) {
      hits.prompt += ids.length
      hits.ceiling += ideal.take(ids)
      hits.cached += replicas[choose(`${request.headers['x-session-id']}`)]!.take(ids)
      ideal.take([...ids, ...answer])
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(sglangAnswer(answer)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `sglang:http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hits: hits as Hits,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** A call, until a prompt ends with `LAST`. */
export function answerOfSession(prompt: readonly number[]): readonly number[] {
  const isLast = Buffer.from(prompt.slice(-80)).includes('LAST')
  return [...bytesOf(isLast ? 'done' : call), end]
}

const call = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
/** The token that ends a turn of the model in models/chatml-bytes. */
const end = 258

const bytesOf = (words: string): readonly number[] => [...Buffer.from(words)]
