import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { holdLoop } from '@espalier/text/signals'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type BodyMemory, openBodyMemory } from './body-memory.ts'
import { BodyReader } from './known-body.ts'

/** From this many characters on, reading a body may hold the event loop for long. */
const longBody = 2_000_000

/** From this many bytes on, a body is remembered: the next one may begin with it. */
const worthKnowing = 16 * 1024

/** Brackets within brackets: deeper than any request of ours, and far from the end of the stack. */
const deepest = 128

/** A request that is refused, with the code of its answer. */
export class RefusedRequest extends Error {
  override name = 'RefusedRequest'
  readonly statusCode: number

  constructor(statusCode: number, message: string) {
    super(message)
    this.statusCode = statusCode
  }
}

/**
 * Reads JSON bodies. An empty one counts as no body, so that requests without content can still name
 * the required content type; one nested too deep is refused before anything recurses into it. What a
 * long one shares with the last body of the same sender is not parsed again.
 */
export function readJsonBodies(server: FastifyInstance): void {
  const memory = openBodyMemory()
  server.removeContentTypeParser('application/json')
  server.addContentTypeParser(
    'application/json',
    ({ routeOptions: { bodyLimit } }: FastifyRequest, payload: IncomingMessage) =>
      readJsonBody(payload, { limit: bodyLimit ?? Number.POSITIVE_INFINITY, memory }),
  )
}

/** How bodies are read. */
export interface BodyOptions {
  /** The most bytes that one may have. */
  readonly limit: number
  /** What is known of the bodies before. */
  readonly memory: BodyMemory
}

/** The body of a request as JSON. */
export async function readJsonBody(
  payload: IncomingMessage,
  { limit, memory }: BodyOptions,
): Promise<unknown> {
  const { headers, url = '' } = payload
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity') {
    throw new RefusedRequest(415, `send the body as it is, not as ${encoding.slice(0, 80)}`)
  }
  const announced = Number(headers['content-length'])
  if (announced > limit) throw tooLong(limit)
  const sender = announced < worthKnowing ? undefined : senderOf(url, headers)
  const reader = new BodyReader(sender === undefined ? undefined : memory.take(sender))
  await gather(payload, reader, limit)
  if (sender === undefined || reader.length < worthKnowing) return readJson(reader.text())
  const { value, known } = reader.read(readJson)
  if (known) memory.keep(sender, known)
  return value
}

/** What kind of content a request says it has, without parameters. */
export function mediaTypeOf({ 'content-type': type }: IncomingHttpHeaders): string | undefined {
  if (type === undefined || type === 'application/json') return type
  return type.split(';')[0]!.trim().toLowerCase()
}

/** The sender of a request: its path and whatever header identifies an attempt or an account. */
function senderOf(url: string, headers: IncomingHttpHeaders): string {
  const names = ['authorization', 'x-api-key', 'x-goog-api-key', 'x-espalier-attempt']
  return JSON.stringify([url, ...names.map(name => headers[name])])
}

function tooLong(limit: number): RefusedRequest {
  return new RefusedRequest(413, `the body is longer than ${limit} bytes`)
}

/** Gives all of a body to its reader. */
function gather(payload: IncomingMessage, reader: BodyReader, limit: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      reader.take(chunk)
      if (reader.length <= limit) return
      payload.off('data', take)
      reject(tooLong(limit))
    }
    payload.on('data', take)
    payload.once('end', resolve)
    payload.once('error', () => reject(new RefusedRequest(400, 'the body ended too soon')))
    payload.resume()
  })
}

/** Texts that a key like `__proto__` needs, in any spelling; without them no deeper check is needed. */
const suspicious = ['__proto__', 'constructor', '\\u00']

/** A body as JSON; `undefined` where it is empty. */
function readJson(given: string): unknown {
  const text = given.startsWith('\uFEFF') ? given.slice(1) : given
  if (text === '') return undefined
  if (text.length > longBody) holdLoop()
  if (depthOf(text) > deepest) {
    throw new RefusedRequest(400, `the body is nested deeper than ${deepest} levels`)
  }
  const value = parse(text)
  if (suspicious.some(word => text.includes(word))) refusePoison(value)
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new RefusedRequest(400, `the body is not JSON: ${(cause as Error).message.slice(0, 200)}`)
  }
}

/** Refuses keys that would reach the prototypes of all objects. */
function refusePoison(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value)) {
    const isPrototype = key === 'constructor' && Object.hasOwn(Object(inner), 'prototype')
    if (key === '__proto__' || isPrototype) {
      throw new RefusedRequest(400, `the body has a key ${JSON.stringify(key)}, which is not taken`)
    }
    refusePoison(inner)
  }
}

const quote = 0x22
const backslash = 0x5c

/** How deep JSON is nested; stops counting beyond what is allowed. */
export function depthOf(json: string): number {
  let depth = 0
  let most = 0
  for (let at = 0; at < json.length && most <= deepest; at++) {
    const code = json.charCodeAt(at)
    if (code === quote) at = endOfText(json, at + 1)
    else if (code === 0x5b || code === 0x7b) most = Math.max(most, ++depth)
    else if (code === 0x5d || code === 0x7d) depth--
  }
  return most
}

/** The quote that ends a text; most of a body is in texts, and `indexOf` is fast. */
function endOfText(json: string, from: number): number {
  for (let end = json.indexOf('"', from); end >= 0; end = json.indexOf('"', end + 1)) {
    let escapes = 0
    while (end - escapes > from && json.charCodeAt(end - escapes - 1) === backslash) escapes++
    if (escapes % 2 === 0) return end
  }
  return json.length
}
