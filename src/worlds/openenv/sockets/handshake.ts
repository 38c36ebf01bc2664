import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'
import { onAbort } from '../../../base/core/call.ts'
import { TextSocket, usualBytes } from './text-socket.ts'

/** How a client opens a socket. */
export interface ConnectOptions {
  readonly signal: AbortSignal
  readonly headers?: Readonly<Record<string, string>>
  /** Bytes of one message. @default 16 MiB */
  readonly bytes?: number
}

/** Opens a WebSocket as a client; throws with the server's answer if it refuses. */
export function connectSocket(url: string, options: ConnectOptions): Promise<TextSocket> {
  const { signal, headers = {}, bytes = usualBytes } = options
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const limits = { maxPayload: bytes, perMessageDeflate: false }
    const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers, ...limits })
    const refuse = (reason: string): void => {
      reject(new Error(`${url} does not open a WebSocket: ${reason}`))
      socket.terminate()
    }
    const release = onAbort(signal, () => {
      reject(signal.reason)
      socket.terminate()
    })
    socket.on('unexpected-response', (_, { statusCode }) => refuse(`it answered ${statusCode}`))
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      release()
      // The system's own errors have codes; what ws finds wrong with an answer has none.
      if (cause.code === undefined) refuse('its handshake is wrong')
      else reject(cause)
    })
    socket.on('open', () => {
      release()
      resolve(new TextSocket(socket, bytes))
    })
  })
}

/** Opens the socket that a request asked for; nothing if it is no handshake, which is answered so. */
export function acceptSocket(
  request: IncomingMessage,
  stream: Duplex,
  { head, bytes = usualBytes }: { readonly head: Buffer; readonly bytes?: number },
): TextSocket | undefined {
  const limits = { maxPayload: bytes, perMessageDeflate: false, clientTracking: false }
  let opened: TextSocket | undefined
  new WebSocketServer({ noServer: true, ...limits }).handleUpgrade(
    request,
    stream,
    head,
    socket => {
      opened = new TextSocket(socket, bytes)
    },
  )
  return opened
}

/** Answers a request for a socket with an error. */
export function refuseSocket(stream: Duplex, code: number, message: string): void {
  const body = JSON.stringify({ error: message })
  stream.on('error', () => {})
  stream.end(
    `HTTP/1.1 ${code} Refused\r\nContent-Type: application/json\r\nConnection: close\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}
