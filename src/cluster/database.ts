import { setTimeout as wait } from 'node:timers/promises'
import type { Client, ClientConfig, Pool } from 'pg'
import { describeCause } from '../core/failure.ts'
import { withoutSecrets } from '../core/process/secrets.ts'
import { loadDriver } from './peers.ts'

/** The database of a cluster. While it restarts or cannot be reached, queries wait. */
export interface Database extends AsyncDisposable {
  /** Runs one statement, again and again while the server cannot be reached. */
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
  /** Milliseconds on a clock that never runs backwards. */
  readonly clock?: () => number
  /** Waits this many milliseconds between tries, or until the signal aborts. */
  readonly pause?: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

const waitFor = async (milliseconds: number, signal: AbortSignal): Promise<void> =>
  await wait(milliseconds, undefined, { signal }).catch(() => undefined)

/** Opens a database and waits for a first answer, so that a wrong address fails at once. */
export async function openDatabase(
  config: ClientConfig,
  options: DatabaseOptions = {},
): Promise<Database> {
  const { tell = () => {}, patience = 900, connections = 4, pause = waitFor } = options
  const { clock = () => performance.now() } = options
  const driver = await loadDriver()
  const reaching = {
    ...config,
    connectionTimeoutMillis: 10_000,
    query_timeout: 60_000,
    keepAlive: true,
  }
  const pool: Pool = new driver.Pool({ ...reaching, max: connections })
  // An idle connection that breaks is noticed by the next query.
  pool.on('error', () => undefined)
  const closing = new AbortController()
  const state = { since: clock(), isAway: false }

  async function query<Row>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<readonly Row[]> {
    const started = clock()
    for (let apart = 50; ; apart = Math.min(2000, apart * 2)) {
      try {
        const { rows } = await pool.query({ ...prepared(text, values), text, values: [...values] })
        if (state.isAway) back()
        return rows as Row[]
      } catch (error) {
        if (closing.signal.aborted || !isAway(error)) throw plainError(error)
        if (clock() - started > patience * 1000) throw plainError(error)
        away(error)
        await pause(apart, closing.signal)
      }
    }
  }
  function away(error: unknown): void {
    state.since = Number.POSITIVE_INFINITY
    if (state.isAway) return
    state.isAway = true
    tell(`the database does not answer (${plainError(error).message}); waiting for it`)
  }
  function back(): void {
    state.isAway = false
    state.since = clock()
    tell('the database answers again')
  }
  const listening = openListening(() => new driver.Client(reaching), {
    signal: closing.signal,
    pause,
  })
  try {
    await pool.query('SELECT 1')
  } catch (error) {
    await pool.end()
    throw plainError(error)
  }
  return {
    query,
    listen: listening.listen,
    contact: () => Math.max(0, (clock() - state.since) / 1000),
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('the database is closed'))
      await listening.close()
      await pool.end()
    },
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

/** Errors after which trying again helps: shutdown, start-up, too many clients, a replica, broken connections, deadlocks. */
const passing =
  /^(?:57P0|08|25006|53300|40001|40P01|ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN|ENOTFOUND)/
const broken = /Connection terminated|timeout|Client has encountered|not queryable/i

function isAway(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isAway)
  const { code = '', message = '' } = error as NodeJS.ErrnoException
  return passing.test(code) || broken.test(message)
}

/** What the driver says, without secrets and in words. */
function plainError(error: unknown): Error {
  const first = error instanceof AggregateError ? error.errors[0] : error
  return new Error(`PostgreSQL: ${withoutSecrets(describeCause(first))}`, { cause: error })
}
