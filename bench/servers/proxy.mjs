// The least that a proxy in Node can be: bytes in, bytes out, connections kept. node proxy.mjs UPSTREAM_URL
import { Agent, createServer, request } from 'node:http'

const upstream = new URL(process.argv[2])
const agent = new Agent({ keepAlive: true, maxSockets: 1024 })
const server = createServer((incoming, outgoing) => {
  const { method, url, headers } = incoming
  const options = {
    host: upstream.hostname,
    port: upstream.port,
    path: url,
    method,
    headers,
    agent,
  }
  const forwarded = request(options, answer => {
    outgoing.writeHead(answer.statusCode, answer.headers)
    answer.pipe(outgoing)
  })
  incoming.pipe(forwarded)
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))
