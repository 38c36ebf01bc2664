import { createRequire } from 'node:module'
import type { Client } from 'undici'

/**
 * Opens a connection. Of undici the client alone is loaded, with the first connection: all of it
 * takes three times as long, which is a third of the time to a run's first request.
 */
export function openClient(origin: string, options: Client.Options): Client {
  const loaded: typeof Client = createRequire(import.meta.url)('undici/lib/dispatcher/client.js')
  return new loaded(origin, options)
}
