import { createRequire } from 'node:module'
import type { Client } from 'undici'

/**
 * Opens a connection. Only undici's client is loaded, with the first connection: loading all of undici
 * takes three times as long, which would be a third of the time to a run's first request.
 */
export function openClient(origin: string, options: Client.Options): Client {
  const loaded: typeof Client = createRequire(import.meta.url)('undici/lib/dispatcher/client.js')
  return new loaded(origin, options)
}
