import type { ServeMetrics } from '../../run/settings/offered.ts'
import { Door } from './door.ts'

/** Serves metrics at `/metrics` on this machine. */
export const serveMetrics: ServeMetrics = async (metrics, port) => {
  const limits = { bodyBytes: 1024, requestSeconds: 10 }
  const door = new Door({ host: '127.0.0.1', ...limits, elsewhere: 'metrics are at /metrics' })
  const type = 'text/plain; version=0.0.4; charset=utf-8'
  door.get('/metrics', (_, reply) => reply.send(200, type, metrics.text()))
  const url = await door.listen(port)
  door.server.unref()
  return { url: `${url}/metrics`, [Symbol.asyncDispose]: () => door.close() }
}
