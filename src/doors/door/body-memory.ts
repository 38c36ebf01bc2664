import type { KnownBody } from './known-body.ts'

/** The last long body of each sender, as far as there is room. */
export interface BodyMemory {
  /** Takes the body out, so that no other request compares with it meanwhile. */
  take(sender: string): KnownBody | undefined
  keep(sender: string, body: KnownBody): void
}

/** Opens a memory of at most so many bytes; the least recent sender is forgotten first. */
export function makeBodyMemory(most = 64 * 2 ** 20): BodyMemory {
  const bodies = new Map<string, KnownBody>()
  let size = 0

  function take(sender: string): KnownBody | undefined {
    const body = bodies.get(sender)
    if (!body) return undefined
    bodies.delete(sender)
    size -= body.bytes.length
    return body
  }

  return {
    take,
    keep(sender, body) {
      take(sender)
      bodies.set(sender, body)
      size += body.bytes.length
      for (const oldest of bodies.keys()) {
        if (size <= most) return
        take(oldest)
      }
    },
  }
}
