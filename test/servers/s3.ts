import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** A server of S3's protocol, as far as segments need it: objects are put whole, read by range and removed, with a signature. */
export async function openS3(): Promise<{ readonly url: string } & AsyncDisposable> {
  const objects = new Map<string, Buffer>()
  const server = createServer(async (request, response) => {
    const { method, url = '', headers } = request
    const body = await buffer(request)
    const isSigned = /^AWS4-HMAC-SHA256 Credential=\S+/.test(headers.authorization ?? '')
    if (!isSigned) return void response.writeHead(403).end()
    if (method === 'PUT') {
      objects.set(url, body)
      return void response.writeHead(200, { etag: '"1"' }).end()
    }
    if (method === 'DELETE') {
      objects.delete(url)
      return void response.writeHead(204).end()
    }
    const object = objects.get(url)
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? []
    if (!object) return void response.writeHead(404).end()
    if (Number(from) >= object.length) return void response.writeHead(416).end()
    response.writeHead(206).end(object.subarray(Number(from), Number(to) + 1))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
