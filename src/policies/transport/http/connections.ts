import { type AnswerHandler, Connection, type HttpRequest } from './connection.ts'

/** A request that was handed over. */
export interface Sending {
  /** Nobody wants the answer any more: closes its connection, or never sends it. */
  abandon(): void
}

/** Connections to one server. */
export interface Connections {
  /** Sends a request over a free connection; waits for one when all are taken. */
  dispatch(request: HttpRequest, handler: AnswerHandler): Sending
  close(): Promise<void>
}

/** A request and where it is: waiting, or under way. */
class Sent implements Sending {
  readonly request: HttpRequest
  readonly handler: AnswerHandler
  connection: Connection | undefined
  isGone = false

  constructor(request: HttpRequest, handler: AnswerHandler) {
    this.request = request
    this.handler = handler
  }

  abandon(): void {
    this.isGone = true
    this.connection?.abandon(this.handler)
  }
}

/** What may stand in a request's first line. */
const written = /^\/[\x21-\x7e]*$/

/** Milliseconds between two looks for connections that nobody used. */
const sweepEvery = 1000

/**
 * Keeps up to `limit` connections, the one used last first, so that those which a smaller load does
 * not need grow old and are closed.
 */
export function openConnections(origin: string, limit: number): Connections {
  const pool = new Pool(origin, limit)
  return {
    dispatch: (request, handler) => pool.dispatch(request, handler),
    close: () => pool.close(),
  }
}

class Pool {
  readonly #origin: string
  readonly #limit: number
  readonly #open = new Set<Connection>()
  /** The one that was used last is the last. */
  readonly #idle: Connection[] = []
  #waiting: Sent[] = []
  /** How many of those that waited had their turn. */
  #next = 0
  #isClosed = false
  #sweep: NodeJS.Timeout | undefined

  constructor(origin: string, limit: number) {
    this.#origin = origin
    this.#limit = limit
  }

  dispatch(request: HttpRequest, handler: AnswerHandler): Sending {
    if (this.#isClosed) throw this.#closed()
    if (!written.test(request.path))
      throw new Error(`"${request.path}" is not a path of a request.`)
    const sent = new Sent(request, handler)
    const connection = this.#take()
    if (connection) this.#send(connection, sent)
    else this.#waiting.push(sent)
    return sent
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#sweep)
    const error = this.#closed()
    const waiting = this.#waiting.slice(this.#next)
    this.#waiting = []
    this.#next = 0
    for (const { handler, isGone } of waiting) if (!isGone) handler.onFailure(error)
    for (const connection of this.#open) connection.destroy(error)
  }

  #closed(): Error {
    return new Error(`The connections to ${this.#origin} were closed.`)
  }

  /** A connection that is free, or a new one where there may be more. */
  #take(): Connection | undefined {
    const now = this.#idle.length > 0 ? performance.now() : 0
    for (let free = this.#idle.pop(); free; free = this.#idle.pop()) {
      if (free.keptUntil > now) return free
      this.#discard(free)
    }
    if (this.#open.size >= this.#limit) return undefined
    const connection = new Connection(this.#origin, {
      onFree: each => this.#onFree(each),
      onGone: each => this.#onGone(each),
    })
    this.#open.add(connection)
    return connection
  }

  #send(connection: Connection, sent: Sent): void {
    sent.connection = connection
    connection.send(sent.request, sent.handler)
  }

  #onFree(connection: Connection): void {
    const next = this.#nextWaiting()
    if (next) {
      this.#send(connection, next)
      return
    }
    this.#idle.push(connection)
    this.#sweep ??= setTimeout(() => this.#sweepIdle(), sweepEvery).unref()
  }

  #onGone(connection: Connection): void {
    this.#open.delete(connection)
    const at = this.#idle.lastIndexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    if (this.#isClosed || this.#open.size >= this.#limit) return
    const next = this.#nextWaiting()
    if (next) this.#send(this.#take()!, next)
  }

  #nextWaiting(): Sent | undefined {
    while (this.#next < this.#waiting.length) {
      const first = this.#waiting[this.#next++]!
      const isLast = this.#next === this.#waiting.length
      if (isLast || (this.#next > 1024 && this.#next * 2 > this.#waiting.length)) {
        this.#waiting = this.#waiting.slice(this.#next)
        this.#next = 0
      }
      if (!first.isGone) return first
    }
    return undefined
  }

  #discard(connection: Connection): void {
    this.#open.delete(connection)
    connection.close()
  }

  #sweepIdle(): void {
    this.#sweep = undefined
    const now = performance.now()
    let old = 0
    while (old < this.#idle.length && this.#idle[old]!.keptUntil <= now) old++
    for (const connection of this.#idle.splice(0, old)) this.#discard(connection)
    if (this.#idle.length > 0) {
      this.#sweep = setTimeout(() => this.#sweepIdle(), sweepEvery).unref()
    }
  }
}
