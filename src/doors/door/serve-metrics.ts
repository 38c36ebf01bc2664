import type { ServeMetrics } from '../../run/settings/offered.ts'
import { openDoor } from './door.ts'

const host = '127.0.0.1'

/** Serves metrics at `/metrics` on this machine. */
export const serveMetrics: ServeMetrics = async (metrics, port) => {
  const server = openDoor({ host, bodyBytes: 1024, requestSeconds: 10 })
  const type = 'text/plain; version=0.0.4; charset=utf-8'
  server.get('/metrics', async (_, reply) => await reply.type(type).send(metrics.text()))
  server.setNotFoundHandler(async (_, reply) => {
    await reply.code(404).type(type).send('metrics are at /metrics\n')
  })
  const url = await server.listen({ port, host })
  server.server.unref()
  return { url: `${url}/metrics`, [Symbol.asyncDispose]: async () => await server.close() }
}
