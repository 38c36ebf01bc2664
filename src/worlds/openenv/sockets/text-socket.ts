import type { WebSocket } from 'ws'

/** How a socket came to its end: the code of its close, 1006 if there was none. */
export interface SocketEnd {
  readonly code: number
  readonly reason: string
}

/** The callbacks of a socket. */
export interface SocketListener {
  text(text: string): void
  /** Called once; nothing arrives after it. */
  ended(end: SocketEnd): void
}

/** Bytes of one message if nothing else is said. */
export const usualBytes = 16 * 2 ** 20

/** How long the other end is waited for when this one closes. */
const closeMilliseconds = 2000

/**
 * One end of a WebSocket that carries texts, within limits: a violation of the protocol, or a message
 * that is too long, closes it with the code for that. What arrives before `listen` waits.
 */
export class TextSocket {
  readonly #socket: WebSocket
  readonly #bytes: number

  constructor(socket: WebSocket, bytes: number) {
    this.#socket = socket
    this.#bytes = bytes
    socket.pause()
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN
  }

  /** Begins to read; called once. */
  listen(listener: SocketListener): void {
    const socket = this.#socket
    let isOver = false
    const end = (how: SocketEnd): void => {
      if (!isOver) listener.ended(how)
      isOver = true
    }
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (isOver || !this.isOpen) return
      if (!isBinary) return listener.text(data.toString())
      const reason = 'only texts are understood here'
      this.close(1003, reason)
      end({ code: 1003, reason })
    })
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      const code = codeOf(cause)
      const reason = code === 1009 ? `a message is longer than ${this.#bytes} bytes` : cause.message
      end({ code, reason })
      // The other end is told why, but not waited for.
      this.#endSoon()
    })
    socket.on('close', (code: number, reason: Buffer) => {
      end({ code, reason: reason.toString() || (code === 1006 ? 'the connection was lost' : '') })
    })
    socket.resume()
  }

  /** Sends a text; one that is sent after the end is dropped. */
  send(text: string): void {
    // Whoever has gone is told of by the end.
    if (this.isOpen) this.#socket.send(text, () => {})
  }

  /** Sends a close frame, and waits a little for the other end's. */
  close(code = 1000, reason = ''): void {
    if (!this.isOpen) return
    this.#socket.close(code, Buffer.from(reason).subarray(0, 120))
    this.#endSoon()
  }

  /** Ends it at once. */
  destroy(): void {
    this.#socket.terminate()
  }

  #endSoon(): void {
    setTimeout(() => this.destroy(), closeMilliseconds).unref()
  }
}

/** The code that a violation of the protocol ends with. */
function codeOf({ code = '' }: NodeJS.ErrnoException): number {
  if (!code.startsWith('WS_ERR_')) return 1006
  if (code.includes('LENGTH') && !code.includes('CONTROL')) return 1009
  if (code === 'WS_ERR_TOO_MANY_BUFFERED_PARTS') return 1008
  return code === 'WS_ERR_INVALID_UTF8' ? 1007 : 1002
}
