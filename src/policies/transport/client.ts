import { createRequire } from 'node:module'
import type { Client } from 'undici'

/**
 * Opens a connection. undici is loaded with the first one: it takes longer than all that is ours.
 */
export function openClient(origin: string, options: Client.Options): Client {
  const { Client } = createRequire(import.meta.url)('undici') as typeof import('undici')
  return new Client(origin, options)
}
