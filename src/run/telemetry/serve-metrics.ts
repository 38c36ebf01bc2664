import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Metrics } from './prometheus.ts'

/** Serves metrics at `/metrics` on this machine. */
export async function serveMetrics(
  metrics: Pick<Metrics, 'text'>,
  port: number,
): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = createServer((request, response) => {
    const isKnown = request.url?.split('?')[0] === '/metrics'
    response.statusCode = isKnown ? 200 : 404
    response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8')
    response.end(isKnown ? metrics.text() : 'metrics are at /metrics\n')
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  server.unref()
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
