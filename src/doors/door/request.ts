import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { parse as parseQuery } from 'node:querystring'
import type { BodyMemory } from './body-memory.ts'
import type { Intake } from './intake.ts'
import { readJson } from './json-body.ts'
import { BodyReader } from './known-body.ts'
import { RefusedRequest } from './refused-request.ts'

/** The head of a request: what is known before its body is read. */
export interface RequestHead {
  readonly method: string
  /** The path and the query, as they were sent. */
  readonly url: string
  readonly path: string
  readonly query: Query
  readonly headers: IncomingHttpHeaders
}

/** What stands behind the question mark; each name once. */
export type Query = Readonly<Record<string, string | undefined>>

/** A request that was let in. Its body is read when it is asked for, and not before. */
export interface DoorRequest<Params = object> extends RequestHead {
  /** What the path says by its pattern. */
  readonly params: Params
  /** The body as JSON; `undefined` if there is none. */
  json(): Promise<unknown>
  /** The whole body, of this type alone. */
  bytes(type: string): Promise<Buffer>
  /** The body as it comes, of this type alone; whoever reads it bounds it. */
  stream(type: string): IncomingMessage
}

/** How the bodies of a door are read. */
export interface BodyOptions {
  /** The most bytes that one may have. */
  readonly limit: number
  /** What is known of the bodies before. */
  readonly memory: BodyMemory
  readonly intake: Intake
}

/** From this many bytes on, a body is remembered: the next one may begin with it. */
const worthKnowing = 16 * 1024

const none: Query = {}

/** A request as it comes from Node, before and while its body is read. */
export class IncomingRequest implements DoorRequest {
  readonly method: string
  readonly url: string
  readonly path: string
  readonly query: Query
  readonly headers: IncomingHttpHeaders
  params: object = {}
  readonly #raw: IncomingMessage
  readonly #options: BodyOptions
  /** Tells a client that waits for it to send its body. */
  #invite: (() => void) | undefined

  constructor(raw: IncomingMessage, options: BodyOptions, invite?: () => void) {
    const { method = '', url = '', headers } = raw
    const mark = url.indexOf('?')
    this.method = method
    this.url = url
    this.path = mark < 0 ? url : url.slice(0, mark)
    // Names that are given twice are refused before a handler sees the query.
    this.query = mark < 0 ? none : (parseQuery(url.slice(mark + 1)) as Query)
    this.headers = headers
    this.#raw = raw
    this.#options = options
    this.#invite = invite
  }

  /** Whether the client may still be sending its body. */
  get isBodyLeft(): boolean {
    return this.#hasBody && !this.#raw.complete
  }

  get #hasBody(): boolean {
    const { 'content-length': length = '0', 'transfer-encoding': encoding } = this.headers
    return encoding !== undefined || length !== '0'
  }

  async json(): Promise<unknown> {
    if (this.method === 'GET' || this.method === 'HEAD') return undefined
    const type = mediaTypeOf(this.headers)
    if (type === undefined && !this.#hasBody) return undefined
    const { memory } = this.#options
    const announced = this.#begin('application/json')
    const sender = announced < worthKnowing ? undefined : senderOf(this)
    const reader = new BodyReader(sender === undefined ? undefined : memory.take(sender))
    using _ = await this.#gather(chunk => reader.take(chunk))
    if (sender === undefined || reader.length < worthKnowing) return readJson(reader.text())
    const { value, known } = reader.read(readJson)
    if (known) memory.keep(sender, known)
    return value
  }

  async bytes(type: string): Promise<Buffer> {
    this.#begin(type)
    const chunks: Buffer[] = []
    using _ = await this.#gather(chunk => void chunks.push(chunk))
    return Buffer.concat(chunks)
  }

  stream(type: string): IncomingMessage {
    this.#checkType(type)
    this.#take()
    return this.#raw
  }

  /** Refuses what can be refused by the head; gives the length that is announced, or not a number. */
  #begin(type: string): number {
    this.#checkType(type)
    const { limit } = this.#options
    const announced = Number(this.headers['content-length'])
    if (announced > limit) throw tooLong(limit)
    this.#take()
    return announced
  }

  #checkType(type: string): void {
    const given = mediaTypeOf(this.headers)
    if (given !== type) throw new RefusedRequest(415, `send the body as ${type}`)
    const encoding = this.headers['content-encoding'] ?? 'identity'
    if (encoding === 'identity') return
    throw new RefusedRequest(415, `send the body as it is, not as ${encoding.slice(0, 80)}`)
  }

  #take(): void {
    this.#invite?.()
    this.#invite = undefined
  }

  /** Gives all of the body to its taker; its bytes count as being read until what is given is disposed of. */
  async #gather(take: (chunk: Buffer) => void): Promise<Disposable> {
    const { limit, intake } = this.#options
    const reading = intake.open(peerOf(this.#raw))
    let length = 0
    try {
      await gather(this.#raw, chunk => {
        reading.take(chunk.length)
        length += chunk.length
        if (length > limit) throw tooLong(limit)
        take(chunk)
      })
      return reading
    } catch (cause) {
      reading[Symbol.dispose]()
      throw cause
    }
  }
}

/** Gives every chunk of a body to a taker, until it throws. */
function gather(raw: IncomingMessage, take: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const onData = (chunk: Buffer): void => {
      try {
        take(chunk)
      } catch (cause) {
        raw.off('data', onData)
        reject(cause as Error)
      }
    }
    raw.on('data', onData)
    raw.once('end', resolve)
    raw.once('error', () => reject(new RefusedRequest(400, 'the body ended too soon')))
  })
}

/** What kind of content a request says it has, without parameters. */
export function mediaTypeOf({ 'content-type': type }: IncomingHttpHeaders): string | undefined {
  if (type === undefined || type === 'application/json') return type
  return type.split(';')[0]!.trim().toLowerCase()
}

/** The headers that identify an account or an attempt. */
const credentials = ['authorization', 'x-api-key', 'x-goog-api-key'] as const

/** The sender of a request: its path and whatever header identifies an attempt or an account. */
function senderOf({ url, headers }: RequestHead): string {
  const names = [...credentials, 'x-espalier-attempt']
  return JSON.stringify([url, ...names.map(name => headers[name])])
}

/** Whose request it is, as far as its share of the memory goes: its credential was checked already. */
function peerOf({ headers, socket }: IncomingMessage): string {
  const name = credentials.find(each => headers[each] !== undefined)
  return String(name === undefined ? socket.remoteAddress : headers[name])
}

function tooLong(limit: number): RefusedRequest {
  return new RefusedRequest(413, `the body is longer than ${limit} bytes`)
}

/** Tells a client that asked whether it should send its body. */
export function invitationOf(response: ServerResponse): () => void {
  return () => response.writeContinue()
}
