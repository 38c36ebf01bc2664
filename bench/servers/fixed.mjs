// A server that gives every request the same answer at once, or after a wait: the floor of what a server can be. It
// reads HTTP/1.1 only as far as it must, so that the processor is left to the clients that are measured.
// node fixed.mjs BODY_FILE [LEAST_MS MOST_MS]
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'

const body = readFileSync(process.argv[2])
const least = Number(process.argv[3] ?? 0)
const most = Number(process.argv[4] ?? 0)
const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
const answer = Buffer.concat([Buffer.from(head), body])
const headEnd = Buffer.from('\r\n\r\n')
let count = 0

/** Calls `onRequest` for every request whose last byte has come; bodies have a content-length. */
function readRequests(onRequest) {
  let begun = Buffer.alloc(0)
  let missing = 0
  return chunk => {
    if (missing > chunk.length) {
      missing -= chunk.length
      return
    }
    let rest = missing > 0 ? chunk.subarray(missing) : chunk
    if (missing > 0) onRequest()
    missing = 0
    if (begun.length > 0) rest = Buffer.concat([begun, rest])
    for (let end = rest.indexOf(headEnd); end >= 0; end = rest.indexOf(headEnd)) {
      const length = /content-length: *(\d+)/i.exec(rest.latin1Slice(0, end))
      missing = end + headEnd.length + Number(length?.[1] ?? 0) - rest.length
      if (missing > 0) {
        rest = rest.subarray(rest.length)
        break
      }
      onRequest()
      rest = rest.subarray(rest.length + missing)
      missing = 0
    }
    begun = rest
  }
}

const server = createServer({ noDelay: true }, socket => {
  const send = () => socket.write(answer)
  const onRequest =
    most === 0
      ? send
      : // Spread without randomness, so that runs compare.
        () => setTimeout(send, least + ((count++ * 617) % 1000) * ((most - least) / 1000))
  socket.on('data', readRequests(onRequest))
  socket.on('error', () => socket.destroy())
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }))
// Reports its CPU time on request: on few cores it takes time away from the client.
process.on('message', () => process.send?.({ cpu: process.cpuUsage() }))
process.on('disconnect', () => process.exit(0))
