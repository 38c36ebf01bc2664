import { holdLoop } from '@espalier/text/signals'
import { deepest, mostMembers, shapeOf } from '../../base/core/process/bounded.ts'
import { RefusedRequest } from './refused-request.ts'

/** From this many characters on, reading a body may hold the event loop for long. */
const longBody = 2_000_000

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
