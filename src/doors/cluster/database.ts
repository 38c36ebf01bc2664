import { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Client, ClientConfig, Pool } from 'pg'
import { whenAborted } from '../../base/core/call.ts'
import { describeCause } from '../../base/core/failure.ts'
import { withoutSecrets } from '../../base/core/process/secrets.ts'
import { loadDriver } from './peers.ts'

/** The database of a cluster. While it restarts, cannot be reached or has no room, queries wait. */
export interface Database extends AsyncDisposable {
  /** Runs one statement, again and again while the server cannot be reached or has no room. */
  query<Row>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /** Listens to announcements; the payload is `undefined` if some may have been missed. */
  listen(channel: string, heard: (payload: string | undefined) => void): Promise<void>
  /** Seconds for which the server has answered without a break. */
  contact(): number
}

/** How a database is used. */
export interface DatabaseOptions {
  /** Called with one line when the server stops answering, and one when it answers again. */
  readonly tell?: (line: string) => void
  /** Seconds without any answer after which it is given up. @default 900 */
  readonly patience?: number
  /** Connections at one time. @default 4 */
  readonly connections?: number
  /** Stops waiting: from then on a server that does not answer is given up at once. @default never */
  readonly signal?: AbortSignal
  /** Milliseconds on a clock that never runs backwards. */
  readonly clock?: () => number
  /** Waits this many milliseconds between tries, or until the signal aborts. */
  readonly pause?: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

const waitFor = async (milliseconds: number, signal: AbortSignal): Promise<void> =>
  await wait(milliseconds, undefined, { signal }).catch(() => undefined)

/** Seconds that a server may take for an answer after `signal` has aborted. */
const lastSeconds = 5
/** Seconds in which connections are closed in order. */
const closeSeconds = 2
/** Seconds between two lines about a server that cannot go on. */
const betweenRefusals = 60

/** Opens a database and waits for a first answer, so that a wrong address fails at once. */
export async function openDatabase(
  config: ClientConfig,
  options: DatabaseOptions = {},
): Promise<Database> {
  const { connections = 4, pause = waitFor } = options
  const { clock = () => performance.now() } = options
  const driver = await loadDriver()
  const sockets = makeSockets()
  const reaching = {
    ...config,
    connectionTimeoutMillis: 10_000,
    query_timeout: 60_000,
    keepAlive: true,
    stream: sockets.open,
  }
  const pool: Pool = new driver.Pool({ ...reaching, max: connections })
  // An idle connection that breaks is noticed by the next query.
  pool.on('error', () => undefined)
  const closing = new AbortController()
  const waiting = openWaiting(options, clock, () => {
    closing.abort(new Error('the database is given up'))
    sockets.destroy()
  })
  const query = makeQuery(pool, { ...options, pause, clock, waiting, closing: closing.signal })
  const { signal } = closing
  const listening = openListening(() => new driver.Client(reaching), { signal, pause })
  const close = async (): Promise<void> => {
    waiting.end()
    closing.abort(new Error('the database is closed'))
    const late = setTimeout(sockets.destroy, closeSeconds * 1000)
    await Promise.all([listening.close(), pool.end()])
    clearTimeout(late)
  }
  try {
    signal.throwIfAborted()
    await waiting.bound(pool.query('SELECT 1'))
    waiting.answered()
  } catch (error) {
    await close()
    throw plainError(error)
  }
  return {
    query,
    listen: (channel, heard) => waiting.bound(listening.listen(channel, heard)),
    contact: waiting.contact,
    [Symbol.asyncDispose]: close,
  }
}

/** The sockets of all connections: those to a server that says nothing can only be destroyed. */
function makeSockets() {
  const open = new Set<Socket>()
  return {
    open(): Socket {
      const socket = new Socket()
      open.add(socket)
      socket.once('close', () => open.delete(socket))
      return socket
    },
    destroy(): void {
      for (const each of open) each.destroy()
    },
  }
}

type Waiting = ReturnType<typeof openWaiting>

/** Whether the server answers, and whether it is waited for where it does not. */
function openWaiting(
  { tell = () => {}, signal = new AbortController().signal }: DatabaseOptions,
  clock: () => number,
  giveUp: () => void,
) {
  let since = clock()
  let state: 'unknown' | 'here' | 'away' = 'unknown'
  let refusedAt = Number.NEGATIVE_INFINITY
  const end = whenAborted(signal, () => {
    if (state !== 'here') giveUp()
  })
  return {
    end,
    /** Seconds for which the server has answered without a break. */
    contact: () => Math.max(0, (clock() - since) / 1000),
    answered(): void {
      if (state === 'away') {
        since = clock()
        tell('the database answers again')
      }
      state = 'here'
    },
    failed(error: unknown): void {
      since = Number.POSITIVE_INFINITY
      if (state !== 'away')
        tell(
          `the database does not answer (${plainError(error).message}); ${
            signal.aborted ? 'giving it up' : 'waiting for it'
          }`,
        )
      state = 'away'
      if (signal.aborted) giveUp()
    },
    /** It is there, but cannot do this now: others of its statements may go through, so that it is told seldom. */
    refused(error: unknown): void {
      if (clock() - refusedAt < betweenRefusals * 1000) return
      refusedAt = clock()
      tell(`the database cannot go on (${plainError(error).message}); waiting until it can`)
    },
    /** The result of a request, which is not waited for much longer once the signal has aborted. */
    async bound<T>(asked: Promise<T>): Promise<T> {
      let timer: NodeJS.Timeout | undefined
      const stop = whenAborted(signal, () => {
        timer = setTimeout(giveUp, lastSeconds * 1000)
      })
      try {
        return await asked
      } finally {
        stop()
        clearTimeout(timer)
      }
    },
  }
}

type Asking = Required<Pick<DatabaseOptions, 'pause' | 'clock'>> &
  Pick<DatabaseOptions, 'patience'> & {
    readonly waiting: Waiting
    /** Aborts when nothing is asked any more. */
    readonly closing: AbortSignal
  }

/** Asks again and again while the server is away. */
function makeQuery(
  pool: Pool,
  { patience = 900, pause, clock, waiting, closing }: Asking,
): Database['query'] {
  return async <Row>(text: string, values: readonly unknown[] = []) => {
    const started = clock()
    for (let apart = 50; ; apart = Math.min(2000, apart * 2)) {
      try {
        closing.throwIfAborted()
        const asked = { ...prepared(text, values), text, values: [...values] }
        const { rows } = await waiting.bound(pool.query(asked))
        waiting.answered()
        return rows as Row[]
      } catch (error) {
        const passing = passingOf(error)
        if (closing.aborted || !passing) throw plainError(error)
        if (clock() - started > patience * 1000) throw plainError(error)
        if (passing === 'away') waiting.failed(error)
        else waiting.refused(error)
        await pause(apart, closing)
      }
    }
  }
}

const names = new Map<string, string>()

/** Statements with values are planned once per connection. */
function prepared(text: string, values: readonly unknown[]): { readonly name?: string } {
  if (values.length === 0) return {}
  const name = names.get(text) ?? `espalier_${names.size}`
  names.set(text, name)
  return { name }
}

/** Listens on a connection of its own, which is reopened whenever it breaks. */
function openListening(
  open: () => Client,
  { signal, pause }: { readonly signal: AbortSignal } & Required<Pick<DatabaseOptions, 'pause'>>,
) {
  const listeners = new Map<string, (payload: string | undefined) => void>()
  let client: Client | undefined

  async function connect(): Promise<void> {
    const next = open()
    next.on('notification', ({ channel, payload }) => listeners.get(channel)?.(payload ?? ''))
    next.on('error', () => undefined)
    next.on('end', () => {
      if (client !== next) return
      client = undefined
      void reconnect()
    })
    await next.connect()
    for (const channel of listeners.keys())
      await next.query(`LISTEN ${next.escapeIdentifier(channel)}`)
    client = next
  }
  async function reconnect(): Promise<void> {
    for (let apart = 50; !signal.aborted; apart = Math.min(2000, apart * 2)) {
      try {
        await connect()
        for (const each of listeners.values()) each(undefined)
        return
      } catch {
        await pause(apart, signal)
      }
    }
  }
  return {
    async listen(channel: string, listener: (payload: string | undefined) => void) {
      listeners.set(channel, listener)
      if (signal.aborted) return
      if (client)
        await client.query(`LISTEN ${client.escapeIdentifier(channel)}`).catch(() => undefined)
      else await connect().catch(() => void reconnect())
    },
    async close(): Promise<void> {
      const last = client
      client = undefined
      await last?.end().catch(() => undefined)
    },
  }
}

/** Errors of a server that is away: it shuts down or starts, is a replica, or connections break. */
const away = /^(?:57P0|08|25006|ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN|ENOTFOUND)/
/** Errors of a server that is there and cannot do it now: no room on its disk, no memory, no connection left, a deadlock. */
const overloaded = /^(?:53|57|40001|40P01)/
const broken = /Connection terminated|timeout|Client has encountered|not queryable/i

/** Why trying again helps; undefined if it does not. */
function passingOf(error: unknown): 'away' | 'overloaded' | undefined {
  if (error instanceof AggregateError) {
    return error.errors.map(passingOf).find(each => each !== undefined)
  }
  const { code = '', message = '' } = error as NodeJS.ErrnoException
  if (away.test(code) || broken.test(message)) return 'away'
  return overloaded.test(code) ? 'overloaded' : undefined
}

/** What the driver says, without secrets and in words. */
function plainError(error: unknown): Error {
  const first = error instanceof AggregateError ? error.errors[0] : error
  return new Error(`PostgreSQL: ${withoutSecrets(describeCause(first))}`, { cause: error })
}
