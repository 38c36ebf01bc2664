// A server that gives every request the same answer at once, or after a wait: the floor of what a server can be.
// node fixed.mjs BODY_FILE [LEAST_MS MOST_MS]
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const body = readFileSync(process.argv[2])
const least = Number(process.argv[3] ?? 0)
const most = Number(process.argv[4] ?? 0)
let count = 0

const server = createServer({ keepAlive: true }, (request, response) => {
  request.on('data', () => {})
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    if (most === 0) response.end(body)
    // Spread without randomness, so that runs compare.
    else
      setTimeout(
        () => response.end(body),
        least + ((count++ * 617) % 1000) * ((most - least) / 1000),
      )
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }))
process.on('disconnect', () => process.exit(0))
