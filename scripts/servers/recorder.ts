import { createServer, request as forward } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What went over the wire, in the form of test/fixtures/servers. */
export interface Exchange {
  readonly method: string
  readonly path: string
  readonly request: unknown
  /** The type of what was sent, where that is not JSON; it is then kept as base64. */
  readonly type?: string
  readonly status: number
  readonly headers: { readonly 'content-type': string | undefined }
  readonly body?: string
  readonly chunks?: readonly string[]
}

/** A proxy that records requests and answers of a server, without keys. */
export async function openRecorder(target: string) {
  const exchanges: Exchange[] = []
  const base = new URL(target)
  const server = createServer((incoming, outgoing) => {
    const sent: Buffer[] = []
    const { method = 'GET', url: path = '/', headers } = incoming
    const ahead = forward(
      {
        host: base.hostname,
        port: base.port,
        method,
        path,
        headers: { ...headers, host: base.host },
      },
      answer => {
        const type = answer.headers['content-type']
        const pieces: Buffer[] = []
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.on('data', piece => {
          pieces.push(piece)
          outgoing.write(piece)
        })
        answer.on('end', () => {
          outgoing.end()
          const texts = pieces.map(piece => piece.toString('utf8'))
          const whole = Buffer.concat(pieces).toString(isProtobuf(type) ? 'base64' : 'utf8')
          const told = type?.includes('event-stream') ? { chunks: texts } : { body: whole }
          const status = answer.statusCode ?? 502
          const kept = { method, path, ...readSent(sent, headers['content-type']), status }
          exchanges.push({ ...kept, headers: { 'content-type': type }, ...told })
        })
      },
    )
    ahead.on('error', error => outgoing.writeHead(502).end(error.message))
    outgoing.on('close', () => ahead.destroy())
    incoming.on('data', piece => sent.push(piece))
    incoming.pipe(ahead)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

const isProtobuf = (type: string | undefined): boolean => type?.includes('protobuf') === true

function readSent(pieces: readonly Buffer[], type: string | undefined) {
  const whole = Buffer.concat(pieces)
  return isProtobuf(type)
    ? { request: whole.toString('base64'), type: type! }
    : { request: readJson(whole.toString('utf8')) }
}

function readJson(text: string): unknown {
  try {
    return text === '' ? null : JSON.parse(text)
  } catch {
    return text
  }
}
