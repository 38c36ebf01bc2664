import type { FastifyInstance } from 'fastify'
import { holdLoop } from '../core/process/signals.ts'

/** Characters of a body that is not read in the blink of an eye. */
const longBody = 2_000_000

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
 * Reads JSON bodies. An empty one is no body, so that requests without content can still say the
 * content type that lets them in; a deep one is refused before anything walks down it.
 */
export function readJsonBodies(server: FastifyInstance): void {
  const parse = server.getDefaultJsonParser('error', 'error')
  server.removeContentTypeParser('application/json')
  server.addContentTypeParser<string>(
    'application/json',
    { parseAs: 'string' },
    (request, body, done) => {
      if (body.length > longBody) holdLoop()
      if (body === '') done(null, undefined)
      else if (depthOf(body) <= deepest) void parse(request, body, done)
      else done(new RefusedRequest(400, `the body is nested deeper than ${deepest} levels`))
    },
  )
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
