import { randomBytes } from 'node:crypto'

/** Kinds of frames: parts of messages, and control frames. */
export const opcodes = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** One frame of RFC 6455, its payload unmasked. */
export interface Frame {
  readonly opcode: number
  readonly isLast: boolean
  readonly payload: Buffer
}

/** A violation of the protocol by the other end, with the close code for it. */
export class FrameError extends Error {
  override name = 'FrameError'
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** What a reader expects of the frames it is given. */
export interface FrameRules {
  /** Whether payloads are masked: those of clients are, those of servers are not. */
  readonly isMasked: boolean
  /** Bytes that one frame may carry. */
  readonly bytes: number
}

interface Head {
  readonly opcode: number
  readonly isLast: boolean
  readonly mask: Buffer | undefined
  readonly start: number
  readonly end: number
}

const known: ReadonlySet<number> = new Set(Object.values(opcodes))

/** Reads frames from bytes as they arrive; a frame that is too long is refused by its head alone. */
export class FrameReader {
  readonly #rules: FrameRules
  #chunks: Buffer[] = []
  #size = 0
  #needed = 2

  constructor(rules: FrameRules) {
    this.#rules = rules
  }

  *read(chunk: Buffer): Generator<Frame> {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    while (this.#size >= this.#needed) {
      const bytes = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
      const head = readHead(bytes, this.#rules)
      if (typeof head === 'number' || bytes.length < head.end) {
        this.#chunks = [bytes]
        this.#needed = typeof head === 'number' ? head : head.end
        continue
      }
      const rest = bytes.subarray(head.end)
      this.#chunks = rest.length > 0 ? [rest] : []
      this.#size = rest.length
      this.#needed = 2
      const payload = unmask(bytes.subarray(head.start, head.end), head.mask)
      yield { opcode: head.opcode, isLast: head.isLast, payload }
    }
  }
}

/** The head of a frame, or how many bytes are needed to read it. */
function readHead(bytes: Buffer, { isMasked, bytes: most }: FrameRules): Head | number {
  const [first = 0, second = 0] = bytes
  const opcode = first & 0x0f
  const isLast = (first & 0x80) !== 0
  if ((first & 0x70) !== 0) throw new FrameError(1002, 'a frame has reserved bits')
  if (!known.has(opcode)) throw new FrameError(1002, `no frame has the opcode ${opcode}`)
  if (((second & 0x80) !== 0) !== isMasked) {
    throw new FrameError(1002, isMasked ? 'a frame is not masked' : 'a frame is masked')
  }
  const short = second & 0x7f
  if (opcode >= opcodes.close && (short > 125 || !isLast)) {
    throw new FrameError(1002, 'a control frame is too long or in parts')
  }
  const widths = { 126: 2, 127: 8 } as const
  const width = short === 126 || short === 127 ? widths[short] : 0
  const start = 2 + width + (isMasked ? 4 : 0)
  if (bytes.length < start) return start
  const length = width === 0 ? short : readLength(bytes, width)
  if (length > most) {
    throw new FrameError(1009, `a frame of ${length} bytes is longer than ${most}`)
  }
  const mask = isMasked ? bytes.subarray(start - 4, start) : undefined
  return { opcode, isLast, mask, start, end: start + length }
}

function readLength(bytes: Buffer, width: 2 | 8): number {
  return width === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
}

function unmask(payload: Buffer, mask: Buffer | undefined): Buffer {
  // Always copied: the received bytes are shared with other frames.
  const plain = Buffer.from(payload)
  if (mask) for (let at = 0; at < plain.length; at++) plain[at]! ^= mask[at & 3]!
  return plain
}

/** A whole frame as bytes; those of clients are masked. */
export function writeFrame(opcode: number, payload: Buffer, isMasked: boolean): Buffer {
  const { length } = payload
  const width = length < 126 ? 0 : length < 65_536 ? 2 : 8
  const head = Buffer.alloc(2 + width)
  head[0] = 0x80 | opcode
  head[1] = (isMasked ? 0x80 : 0) | (width === 0 ? length : width === 2 ? 126 : 127)
  if (width === 2) head.writeUInt16BE(length, 2)
  if (width === 8) head.writeBigUInt64BE(BigInt(length), 2)
  if (!isMasked) return Buffer.concat([head, payload])
  const mask = randomBytes(4)
  return Buffer.concat([head, mask, unmask(payload, mask)])
}
