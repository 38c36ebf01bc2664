import { openDoor } from '../../../doors/door/door.ts'
import type { Metrics } from './prometheus.ts'

const host = '127.0.0.1'

/** Serves metrics at `/metrics` on this machine. */
export async function serveMetrics(
  metrics: Pick<Metrics, 'text'>,
  port: number,
): Promise<{ readonly url: string } & AsyncDisposable> {
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
