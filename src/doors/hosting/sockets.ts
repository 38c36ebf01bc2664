import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { describeCause } from '../../base/core/failure.ts'
import { jsonWithoutSecrets } from '../../base/core/process/secrets.ts'
import { acceptSocket, refuseSocket } from '../../worlds/openenv/sockets/handshake.ts'
import type { TextSocket } from '../../worlds/openenv/sockets/text-socket.ts'
import { type DoorOptions, refuseEntry } from '../door/rules.ts'
import { FullError, type Host, type HostSession } from './host.ts'
import { answerRpc, rpcCodes, rpcError } from './mcp.ts'
import { fullAnswer, OpenEnvConversation, refusal } from './openenv-messages.ts'

/** How many texts may wait for their answer on one socket: the protocol has one at a time. */
const mostWaiting = 16

/** Opens the sockets /ws and /mcp of a server; the returned function ends all of them. */
export function addSockets(
  server: Server,
  host: Host,
  options: DoorOptions & { readonly bytes: number },
): () => void {
  const open = new Set<TextSocket>()
  server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    const [pathname, query = ''] = (request.url ?? '').split('?', 2)
    const refused = refuseEntry(request, options)
    if (refused) return refuseSocket(stream, refused.statusCode, refused.message)
    if (pathname !== '/ws' && pathname !== '/mcp') {
      return refuseSocket(stream, 404, 'the sockets here are /ws and /mcp')
    }
    const socket = acceptSocket(request, stream, { head, bytes: options.bytes })
    if (!socket) return undefined
    open.add(socket)
    const ended = (): void => void open.delete(socket)
    if (pathname === '/mcp') serveSocket(socket, beginMcp(host), ended)
    else
      serveSocket(socket, beginOpenEnv(host, new URLSearchParams(query).get('session_id')), ended)
    return undefined
  })
  return () => {
    for (const socket of open) socket.close(1001, 'the server stops')
  }
}

/** One client's side: how it is answered, and how its session ends. */
interface Served extends AsyncDisposable {
  /** Undefined if there is no answer, `close` if the client is done. */
  answer(text: string): Promise<object | 'close' | undefined>
}

/** Answers the messages of a socket in order until it ends; a session that cannot begin gets its error and is closed. */
function serveSocket(socket: TextSocket, begun: Served | object, ended: () => void): void {
  if (!('answer' in begun)) {
    socket.listen({ text() {}, ended })
    socket.send(jsonWithoutSecrets(begun))
    socket.close()
    return
  }
  let last = Promise.resolve()
  let waiting = 0
  socket.listen({
    text(text) {
      if (++waiting > mostWaiting) return socket.close(1008, 'one request at a time')
      last = last.then(async () => {
        const answer = socket.isOpen ? await begun.answer(text) : undefined
        waiting--
        if (answer === 'close') socket.close()
        else if (answer !== undefined) socket.send(jsonWithoutSecrets(answer))
      })
    },
    ended() {
      ended()
      void last.then(() => begun[Symbol.asyncDispose]())
    },
  })
}

function beginOpenEnv(host: Host, named: string | null): Served | object {
  try {
    const session = named === null ? host.begin() : attach(host, named)
    const conversation = new OpenEnvConversation(session)
    session.isAttached = true
    return {
      answer: async text => (isClose(text) ? 'close' : await conversation.answer(text)),
      async [Symbol.asyncDispose]() {
        session.isAttached = false
        if (named === null) await session[Symbol.asyncDispose]()
      },
    } satisfies Served
  } catch (cause) {
    if (cause instanceof FullError) return fullAnswer(cause)
    return refusal('SESSION_ERROR', describeCause(cause))
  }
}

function attach(host: Host, named: string): HostSession {
  const session = host.find(named)
  if (!session) throw new Error(`Unknown session_id: ${named.slice(0, 100)}`)
  if (session.isAttached) throw new Error(`Session ${named} already has an attached WebSocket`)
  return session
}

function isClose(text: string): boolean {
  return text.length < 100 && /^\s*\{\s*"type"\s*:\s*"close"\s*\}\s*$/.test(text)
}

function beginMcp(host: Host): Served | object {
  try {
    const session = host.begin()
    session.isAttached = true
    return {
      async answer(text) {
        let body: unknown
        try {
          body = JSON.parse(text)
        } catch (cause) {
          return rpcError(null, rpcCodes.notJson, `Parse error: ${(cause as Error).message}`)
        }
        return await answerRpc(body, session, 'openenv')
      },
      [Symbol.asyncDispose]: () => session[Symbol.asyncDispose](),
    } satisfies Served
  } catch (cause) {
    if (!(cause instanceof FullError)) throw cause
    const counts = { active_sessions: cause.active, max_sessions: cause.most }
    return rpcError(null, rpcCodes.server, cause.message, counts)
  }
}
