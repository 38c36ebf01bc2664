import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

const digest = (text: string): Buffer => hash('sha256', text, 'buffer')

/** Compares digests, so that neither length nor content of a secret shows in the time it takes. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected))
}

/** The token in `Authorization: Bearer …`. */
export function bearerOf({ authorization }: IncomingHttpHeaders): string | undefined {
  return /^Bearer (.+)$/i.exec(authorization ?? '')?.[1]
}
