/** Headers of an answer by their names in small letters; one that came several times is joined. */
export type AnswerHeaders = Readonly<Record<string, string>>

/** Takes an answer while it comes. */
export interface AnswerTaker {
  onHead(status: number, headers: AnswerHeaders): void
  /** The bytes are overwritten after the call: who keeps them, copies them. */
  onData(chunk: Buffer): void
}

/** What the next bytes of an answer are. */
type Part = 'head' | 'body' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailers' | 'rest' | 'over'

const lineEnd = Buffer.from('\r\n')
const headEnd = Buffer.from('\r\n\r\n')
const nothing = Buffer.alloc(0)
/** Neither a head nor a line of an answer may be longer than this. */
const longestHead = 65_536

/** Reads the answers of one connection, HTTP/1.1 or 1.0, one after the other. */
export class AnswerReader {
  readonly #taker: AnswerTaker
  #part: Part = 'over'
  /** Bytes of the body, or of its chunk, that are to come. */
  #left = 0
  /** The beginning of a head or a line that has not ended yet. */
  #begun = nothing
  #staysOpen = false
  #keepAliveSeconds: number | undefined

  constructor(taker: AnswerTaker) {
    this.#taker = taker
  }

  /** The whole answer was read. */
  get isOver(): boolean {
    return this.#part === 'over'
  }

  /** Whether the connection can serve another request, as far as the last answer tells. */
  get staysOpen(): boolean {
    return this.#staysOpen
  }

  /** Seconds that the server says it keeps the connection. */
  get keepAliveSeconds(): number | undefined {
    return this.#keepAliveSeconds
  }

  /** A request was sent: what comes now answers it. */
  begin(): void {
    this.#part = 'head'
  }

  /** Takes the next bytes; throws where they are not what HTTP says. */
  take(bytes: Buffer): void {
    let rest = this.#begun.length > 0 ? Buffer.concat([this.#begun, bytes]) : bytes
    this.#begun = nothing
    while (rest.length > 0) rest = this.#read(rest)
  }

  /** The connection ended; tells whether that was the end of the answer, too. */
  end(): boolean {
    if (this.#part !== 'rest') return false
    this.#part = 'over'
    return true
  }

  /** Reads what comes first; gives what is left behind it. */
  #read(bytes: Buffer): Buffer {
    switch (this.#part) {
      case 'head':
        return this.#readUntil(headEnd, bytes, text => this.#takeHead(text))
      case 'body':
      case 'chunk':
        return this.#readBody(bytes)
      case 'chunk-size':
        return this.#readUntil(lineEnd, bytes, text => this.#takeSize(text))
      case 'chunk-end':
        return this.#readUntil(lineEnd, bytes, text => this.#takeChunkEnd(text))
      case 'trailers':
        return this.#readUntil(lineEnd, bytes, text => {
          if (text === '') this.#part = 'over'
        })
      case 'rest':
        this.#taker.onData(bytes)
        return nothing
      case 'over':
        throw fault('bytes came that belong to no answer')
    }
  }

  #readUntil(end: Buffer, bytes: Buffer, take: (text: string) => void): Buffer {
    const at = bytes.indexOf(end)
    if (at > longestHead || (at < 0 && bytes.length > longestHead)) {
      throw fault(`a head or a line is longer than ${longestHead} bytes`)
    }
    if (at < 0) {
      this.#begun = Buffer.from(bytes)
      return nothing
    }
    take(bytes.toString('latin1', 0, at))
    return bytes.subarray(at + end.length)
  }

  #takeHead(text: string): void {
    const { status, version, headers } = readHead(text)
    // What a server says while it is still working is no answer.
    if (status >= 100 && status < 200 && status !== 101) return
    const connection = headers.connection?.toLowerCase() ?? ''
    this.#staysOpen = version === 1 ? connection !== 'close' : connection === 'keep-alive'
    const hint = /timeout=(\d{1,6})/.exec(headers['keep-alive'] ?? '')
    this.#keepAliveSeconds = hint ? Number(hint[1]) : undefined
    this.#taker.onHead(status, headers)
    this.#part = this.#bodyAfter(status, headers)
  }

  #bodyAfter(status: number, headers: AnswerHeaders): Part {
    if (status === 204 || status === 304) return 'over'
    if (headers['transfer-encoding']?.toLowerCase().endsWith('chunked')) return 'chunk-size'
    const length = headers['content-length']
    if (length === undefined) {
      this.#staysOpen = false
      return 'rest'
    }
    if (!/^\d{1,15}$/.test(length)) throw fault(`its content-length is "${length}"`)
    this.#left = Number(length)
    return this.#left === 0 ? 'over' : 'body'
  }

  #readBody(bytes: Buffer): Buffer {
    const isEnough = bytes.length >= this.#left
    const own = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes
    const rest = bytes.length > this.#left ? bytes.subarray(this.#left) : nothing
    this.#left -= own.length
    if (isEnough) this.#part = this.#part === 'chunk' ? 'chunk-end' : 'over'
    this.#taker.onData(own)
    return rest
  }

  #takeSize(line: string): void {
    const size = /^([0-9a-f]{1,12})[ \t]*(?:;|$)/i.exec(line)
    if (!size) throw fault(`a chunk begins with "${line.slice(0, 40)}"`)
    this.#left = Number.parseInt(size[1]!, 16)
    this.#part = this.#left === 0 ? 'trailers' : 'chunk'
  }

  #takeChunkEnd(line: string): void {
    if (line !== '') throw fault('a chunk is longer than it says')
    this.#part = 'chunk-size'
  }
}

interface Head {
  readonly status: number
  /** 1 for HTTP/1.1, 0 for HTTP/1.0. */
  readonly version: number
  readonly headers: AnswerHeaders
}

function readHead(text: string): Head {
  const lines = text.split('\r\n')
  const start = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(lines[0]!)
  if (!start) throw fault(`it begins with ${JSON.stringify(lines[0]!.slice(0, 80))}`)
  const headers: Record<string, string> = Object.create(null)
  for (let index = 1; index < lines.length; index++) {
    const line = lines[index]!
    const colon = line.indexOf(':')
    if (colon < 1) throw fault(`a header reads ${JSON.stringify(line.slice(0, 80))}`)
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const before = headers[name]
    // The same length said twice is one length.
    headers[name] = before === undefined || before === value ? value : `${before}, ${value}`
  }
  return { status: Number(start[2]), version: Number(start[1]), headers }
}

function fault(problem: string): Error {
  return new Error(`the answer is not HTTP/1.1: ${problem}`)
}
