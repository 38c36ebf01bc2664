import { createHash } from 'node:crypto'

/** A digest of plain data, to see whether what is sent a second time is the same. */
export function digestOf(data: unknown): string {
  return createHash('sha256').update(JSON.stringify(data)).digest('hex')
}
