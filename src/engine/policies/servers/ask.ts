import { type Call, onAbort } from '../../../base/core/call.ts'
import type { Exchange } from '../transport/exchange.ts'
import { asObject, type Fields, parseJson } from '../transport/reading.ts'
import { isUnknownPath } from '../transport/server-error.ts'
import type { Server, ServerRequest } from './server.ts'

/** Sends a request and waits for its body; an aborted signal closes the connection. */
export async function ask(server: Server, request: ServerRequest, call: Call): Promise<Buffer> {
  call.signal.throwIfAborted()
  return await answerOf(server.start(request), call)
}

/** The answer of an exchange; an aborted signal closes its connection. */
export async function answerOf<T>(exchange: Exchange<T>, { signal }: Call): Promise<T> {
  const release = onAbort(signal, () => exchange.cancel(signal.reason))
  try {
    return await exchange.answer
  } finally {
    release()
  }
}

/** The JSON object at the first of these paths that the server knows. */
export async function getObject(
  server: Server,
  paths: readonly string[],
  call: Call,
): Promise<Fields> {
  for (const [index, path] of paths.entries()) {
    try {
      const where = `GET ${server.url}${path}`
      return asObject(parseJson(await ask(server, { path }, call), where), where, 'the answer')
    } catch (cause) {
      if (index === paths.length - 1 || !isUnknownPath(cause)) throw cause
    }
  }
  throw new RangeError('no path to ask')
}

/** What a server says of itself at `/metrics`, one value of a name for each of its engines. */
export interface Metrics {
  valuesOf(name: string): readonly number[]
}

/** Reads a server's metrics; one that has none says nothing. */
export async function readMetrics(server: Server, call: Call): Promise<Metrics> {
  const text = (await ask(server, { path: '/metrics' }, call).catch(() => '')).toString()
  return {
    valuesOf(name) {
      const lines = text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))
      return [...lines].map(([, value]) => Number(value)).filter(Number.isFinite)
    },
  }
}

/** How full the cache of keys and values is, from 0 to 1, by the first of these names that the server knows: of its fullest engine. */
export async function readPressure(
  server: Server,
  names: readonly string[],
  call: Call,
): Promise<number | undefined> {
  const metrics = await readMetrics(server, call)
  const values = names.map(metrics.valuesOf).find(({ length }) => length > 0)
  return values && Math.max(...values)
}
