import { type Call, onAbort } from '../../../base/core/call.ts'
import { asObject, type Fields, parseJson } from '../transport/reading.ts'
import { isUnknownPath } from '../transport/server-error.ts'
import type { Server, ServerRequest } from './server.ts'

/** Sends a request and waits for its body; an aborted signal closes the connection. */
export async function ask(server: Server, request: ServerRequest, call: Call): Promise<Buffer> {
  call.signal.throwIfAborted()
  const { signal } = call
  const exchange = server.start(request)
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
