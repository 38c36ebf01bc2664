import { holdLoop } from '@espalier/text/signals'
import { RefusedRequest } from './refused-request.ts'

/** From this many characters on, reading a body may hold the event loop for long. */
const longBody = 2_000_000

/** Brackets within brackets: deeper than any request of ours, and far from the end of the stack. */
const deepest = 128

/** Values in lists and objects: what is parsed in a moment, and more than any request of ours has. */
const mostMembers = 1_000_000

/** A body as JSON, bounded in depth and members before it is parsed; `undefined` if it is empty. */
export function readJson(given: string): unknown {
  const text = given.startsWith('\uFEFF') ? given.slice(1) : given
  if (text === '') return undefined
  if (text.length > longBody) holdLoop()
  const { depth, members } = shapeOf(text)
  if (depth > deepest) {
    throw new RefusedRequest(400, `the body is nested deeper than ${deepest} levels`)
  }
  if (members > mostMembers) {
    throw new RefusedRequest(413, `the body has more than ${mostMembers} values`)
  }
  const value = parse(text)
  if (suspicious.some(word => text.includes(word))) refusePoison(value)
  return value
}

/** Texts that a key like `__proto__` needs, in any spelling; without them no deeper check is needed. */
const suspicious = ['__proto__', 'constructor', '\\u00']

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
const comma = 0x2c
const backslash = 0x5c

/** How deep JSON is nested, and how many values it has at most; stops counting beyond what is allowed. */
export function shapeOf(json: string): { readonly depth: number; readonly members: number } {
  let level = 0
  let depth = 0
  let members = 1
  for (let at = 0; at < json.length && depth <= deepest && members <= mostMembers; at++) {
    const code = json.charCodeAt(at)
    if (code === quote) at = endOfText(json, at + 1)
    else if (code === comma) members++
    else if (code === 0x5b || code === 0x7b) {
      depth = Math.max(depth, ++level)
      members++
    } else if (code === 0x5d || code === 0x7d) level--
  }
  return { depth, members }
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
