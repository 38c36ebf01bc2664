import type { Duplex } from 'node:stream'
import { FrameError, FrameReader, opcodes, writeFrame } from './frames.ts'

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

/** Which end this is, and how much the other may send. */
export interface SocketOptions {
  readonly role: 'client' | 'server'
  /** Bytes of one message. @default 16 MiB */
  readonly bytes?: number
  /** Bytes that arrived behind the handshake already. */
  readonly head?: Buffer
}

const mostParts = 10_000
const closeMilliseconds = 2000
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * One end of a WebSocket that carries texts (RFC 6455, without extensions), within limits: a violation
 * of the protocol, or a message that is too long, closes it with the code for that.
 */
export class TextSocket {
  readonly #stream: Duplex
  readonly #isClient: boolean
  readonly #most: number
  readonly #reader: FrameReader
  #listener: SocketListener | undefined
  #parts: Buffer[] = []
  #size = 0
  #hasSentClose = false
  #end: SocketEnd | undefined

  constructor(stream: Duplex, { role, bytes = 16 * 2 ** 20, head }: SocketOptions) {
    this.#stream = stream
    this.#isClient = role === 'client'
    this.#most = bytes
    this.#reader = new FrameReader({ isMasked: role === 'server', bytes })
    if (head && head.length > 0) stream.unshift(head)
  }

  get isOpen(): boolean {
    return this.#end === undefined && !this.#hasSentClose
  }

  /** Begins to read; called once. */
  listen(listener: SocketListener): void {
    this.#listener = listener
    const stream = this.#stream
    stream.on('data', (chunk: Buffer) => this.#read(chunk))
    stream.on('error', cause => this.#finish({ code: 1006, reason: String(cause) }))
    stream.on('close', () => this.#finish({ code: 1006, reason: 'the connection was lost' }))
    stream.on('end', () => this.#finish({ code: 1006, reason: 'the connection was ended' }))
    stream.resume()
  }

  /** Sends a text; one that is sent after the end is dropped. */
  send(text: string): void {
    if (this.isOpen) this.#write(opcodes.text, Buffer.from(text))
  }

  /** Sends a close frame, and waits a little for the other end's. */
  close(code = 1000, reason = ''): void {
    if (!this.isOpen) return
    this.#hasSentClose = true
    this.#write(opcodes.close, closePayload(code, reason))
    setTimeout(() => this.destroy(), closeMilliseconds).unref()
  }

  /** Ends it at once. */
  destroy(): void {
    this.#finish({ code: 1006, reason: 'ended here' })
  }

  #write(opcode: number, payload: Buffer): void {
    if (!this.#stream.writable) return
    this.#stream.write(writeFrame(opcode, payload, this.#isClient))
  }

  #finish(end: SocketEnd): void {
    if (this.#end) return
    this.#end = end
    this.#parts = []
    // Written frames are still sent; errors after the end must not throw.
    this.#stream.on('error', () => {})
    this.#stream.end(() => this.#stream.destroy())
    setTimeout(() => this.#stream.destroy(), closeMilliseconds).unref()
    this.#listener?.ended(end)
  }

  #read(chunk: Buffer): void {
    if (this.#end) return
    try {
      for (const frame of this.#reader.read(chunk)) {
        this.#take(frame.opcode, frame.payload, frame.isLast)
        if (this.#end) return
      }
    } catch (cause) {
      const { code, message } =
        cause instanceof FrameError ? cause : new FrameError(1002, String(cause))
      if (!this.#hasSentClose) this.#write(opcodes.close, closePayload(code, message))
      this.#finish({ code, reason: message })
    }
  }

  #take(opcode: number, payload: Buffer, isLast: boolean): void {
    if (opcode === opcodes.ping) this.#write(opcodes.pong, payload)
    else if (opcode === opcodes.close) this.#answerClose(payload)
    else if (opcode !== opcodes.pong) this.#gather(opcode, payload, isLast)
  }

  /** Puts the parts of a message together. */
  #gather(opcode: number, payload: Buffer, isLast: boolean): void {
    if (opcode === opcodes.binary) throw new FrameError(1003, 'only texts are understood here')
    if ((opcode === opcodes.more) !== this.#parts.length > 0) {
      throw new FrameError(1002, 'the parts of a message are out of order')
    }
    this.#parts.push(payload)
    this.#size += payload.length
    if (this.#size > this.#most || this.#parts.length > mostParts) {
      throw new FrameError(1009, `a message is longer than ${this.#most} bytes`)
    }
    if (!isLast) return
    const whole = Buffer.concat(this.#parts)
    this.#parts = []
    this.#size = 0
    this.#listener?.text(textOf(whole))
  }

  #answerClose(payload: Buffer): void {
    const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005
    const reason = payload.subarray(2).toString('utf8')
    if (!this.#hasSentClose) this.#write(opcodes.close, payload.subarray(0, 2))
    this.#hasSentClose = true
    this.#finish({ code, reason })
  }
}

function textOf(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new FrameError(1007, 'a message is not UTF-8')
  }
}

function closePayload(code: number, reason: string): Buffer {
  const text = Buffer.from(reason).subarray(0, 120)
  const payload = Buffer.alloc(2 + text.length)
  payload.writeUInt16BE(code, 0)
  text.copy(payload, 2)
  return payload
}
