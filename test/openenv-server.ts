import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { acceptSocket } from '../src/worlds/openenv/sockets/handshake.ts'
import type { TextSocket } from '../src/worlds/openenv/sockets/text-socket.ts'

/** What a server was asked and what it answered, as it was recorded. */
export interface Recording {
  readonly http: Readonly<Record<string, { readonly status: number; readonly body: unknown }>>
  /** Per socket what was sent and what came back, in their order. */
  readonly sockets: readonly {
    readonly path: string
    readonly exchanges: readonly { readonly sent: unknown; readonly answer: unknown }[]
  }[]
}

/** A server that listens; how often its sockets were opened, and how many are open. */
export interface TestServer extends AsyncDisposable {
  readonly url: string
  readonly sockets: { opened: number; open: number }
}

/** What a test does with a socket that was opened. */
export type OnSocket = (socket: TextSocket, path: string, number: number) => void

/** Starts an OpenEnv server that answers as a test says. */
export async function startOpenEnv(
  http: (path: string, body: string) => { readonly status: number; readonly body: unknown },
  onSocket: OnSocket,
): Promise<TestServer> {
  const sockets = { opened: 0, open: 0 }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    const answer = http(request.url ?? '', body)
    response.writeHead(answer.status, { 'content-type': 'application/json' })
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
  })
  server.on('upgrade', (request, stream, head) => {
    sockets.open++
    stream.once('close', () => sockets.open--)
    const socket = acceptSocket(request, stream, { head })
    if (socket) onSocket(socket, request.url ?? '', sockets.opened++)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sockets,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** A server that answers what a real one answered when the same was sent, and closes what is new to it. */
export function replayOpenEnv({ http, sockets }: Recording): Promise<TestServer> {
  return startOpenEnv(
    (path, body) => http[`${path} ${body}`.trim()] ?? { status: 404, body: {} },
    (socket, path, number) => {
      const { exchanges = [], path: recorded } = sockets[number] ?? {}
      let at = 0
      socket.listen({
        text(text) {
          const sent = JSON.parse(text) as { type?: string }
          if (sent.type === 'close') return socket.close()
          const next = exchanges[at++]
          const isSame =
            path === recorded && isDeepStrictEqual(withoutId(sent), withoutId(next?.sent))
          if (isSame) socket.send(JSON.stringify(answerTo(sent, next?.answer)))
          else socket.close(4000, `not recorded on socket ${number}: ${text}`)
        },
        ended() {},
      })
    },
  )
}

/** Requests of MCP carry a number that differs from run to run. */
function withoutId(message: unknown): unknown {
  const { id: _, ...rest } = message as Record<string, unknown>
  return rest
}

function answerTo(sent: object, answer: unknown): unknown {
  return 'id' in sent ? { ...(answer as object), id: sent.id } : answer
}

/** The HTTP answers of a small game with one field. */
export function cardOf(action: object = guessAction): (path: string) => {
  status: number
  body: unknown
} {
  return path => {
    if (path === '/schema') return { status: 200, body: { action, observation: {}, state: {} } }
    if (path === '/metadata') return { status: 200, body: { name: 'game', description: 'Guess.' } }
    return { status: 404, body: {} }
  }
}

const guessAction = {
  type: 'object',
  properties: { guess: { type: 'integer' } },
  required: ['guess'],
}
