import { createHash, randomBytes } from 'node:crypto'
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { TextSocket } from './text-socket.ts'

const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

function acceptOf(key: string): string {
  return createHash('sha1').update(`${key}${guid}`).digest('base64')
}

/** How a client opens a socket. */
export interface ConnectOptions {
  readonly signal: AbortSignal
  readonly headers?: Readonly<Record<string, string>>
  /** Bytes of one message. @default 16 MiB */
  readonly bytes?: number
}

/** Opens a WebSocket as a client; throws with the server's answer if it refuses. */
export function connectSocket(url: string, options: ConnectOptions): Promise<TextSocket> {
  const { protocol, href } = new URL(url)
  const isSecure = protocol === 'wss:' || protocol === 'https:'
  const target = href.replace(/^(?:ws|http)s?:/, isSecure ? 'https:' : 'http:')
  const key = randomBytes(16).toString('base64')
  const { signal, headers, bytes } = options
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const request = (isSecure ? tlsRequest : plainRequest)(target, {
      signal,
      // A connection of its own, not from a pool.
      agent: false,
      headers: {
        ...headers,
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': key,
      },
    })
    request.on('error', reject)
    request.on('response', response => {
      response.resume()
      request.destroy()
      reject(new Error(`${url} does not open a WebSocket: it answered ${response.statusCode}`))
    })
    request.on('upgrade', (response, stream, head) => {
      if (response.headers['sec-websocket-accept'] !== acceptOf(key)) {
        stream.destroy()
        return reject(new Error(`${url} does not open a WebSocket: its handshake is wrong`))
      }
      resolve(new TextSocket(stream, { role: 'client', head, ...(bytes && { bytes }) }))
    })
    request.end()
  })
}

/** Why a request is not a valid WebSocket handshake; undefined if it is. */
export function refusalOf({ method, headers }: IncomingMessage): string | undefined {
  if (method !== 'GET') return 'a WebSocket is opened by GET'
  if (headers.upgrade?.toLowerCase() !== 'websocket') return 'only WebSockets are opened here'
  if (headers['sec-websocket-version'] !== '13') return 'only version 13 is spoken here'
  const key = headers['sec-websocket-key'] ?? ''
  return /^[a-z0-9+/]{22}==$/i.test(key) ? undefined : 'the key of the handshake is wrong'
}

/** Opens the socket that a request asked for; ask `refusalOf` first. */
export function acceptSocket(
  request: IncomingMessage,
  stream: Duplex,
  { head, bytes }: { readonly head: Buffer; readonly bytes?: number },
): TextSocket {
  const key = request.headers['sec-websocket-key'] ?? ''
  stream.write(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      `Sec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`,
  )
  return new TextSocket(stream, { role: 'server', head, ...(bytes && { bytes }) })
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
