import { whenAborted } from '../../../base/core/call.ts'
import { connectionOf, readAddress, shownAddress } from '../../../doors/cluster/address.ts'
import { openDatabase } from '../../../doors/cluster/database.ts'
import { threadsOf } from '../../../doors/cluster/makers.ts'
import { migrate } from '../../../doors/cluster/schema.ts'
import { starterGone } from '../../../doors/cluster/starter.ts'
import { type WorkerOptions, work } from '../../../doors/cluster/worker.ts'
import { openNamed } from '../../../run/settings/open-named.ts'
import { type Command, type Invocation, MisuseError } from '../../command.ts'
import { counted } from '../../listening.ts'

/** Rolls attempts of other machines' runs. */
export const workerCommand: Command = {
  name: 'worker',
  usage: '--cluster postgres://USER@HOST/DATABASE [--concurrency N] [--threads N|auto]',
  about:
    'Takes attempts of every run whose coordinator uses the same database (--cluster there too), makes\n' +
    'and scores them, and writes them back. What a run is rolled with comes from its coordinator; code of\n' +
    'your own is read from this folder and must be the same as there. On SIGTERM it ends what it can\n' +
    'within --grace and hands back the rest. One worker is enough for a machine: --threads auto makes its\n' +
    'attempts on all cores (16 at one time on each, unless --concurrency says how many). The password comes from PGPASSWORD, encryption from\n' +
    'PGSSLMODE and PGSSLROOTCERT, and the whole address from ESPALIER_CLUSTER where there is no --cluster.',
  examples: [
    'PGPASSWORD=… espalier worker --cluster postgres://espalier@db.internal/espalier --concurrency 64',
  ],
  settings: ['cluster', 'concurrency', 'threads'],
  own: {
    lease: {
      help: 'Seconds without a sign of life after which what it holds is given to others (default: 30)',
      argument: 'N',
    },
    grace: {
      help: 'Seconds that attempts under way are given when it is stopped (default: 30)',
      argument: 'N',
    },
  },
  defaults: { threads: 1 },
  positionalCount: [0, 0],
  run: runWorker,
}

async function runWorker({ flags, own, terminal, signal, json }: Invocation): Promise<number> {
  const { threads = 1 } = flags
  const { concurrency = 16 * threadsOf(threads) } = flags
  if (typeof concurrency !== 'number') {
    throw new MisuseError('worker: --concurrency is one number, attempts at one time')
  }
  const url = databaseNamed(flags.cluster ?? process.env.ESPALIER_CLUSTER)
  const { tell } = terminal
  const announce = (): void => {
    if (json)
      terminal.print(
        JSON.stringify({ cluster: shownAddress(url), concurrency, threads: threadsOf(threads) }),
      )
    else
      tell(
        `making attempts for ${shownAddress(url)}, ${concurrency} at one time${inThreads(threadsOf(threads))}`,
      )
  }
  const { grace = 30 } = counted('grace', own.grace)
  const lease = counted('lease', own.lease)
  // Before anything is waited for: whoever started this worker may end at any time.
  const ending = AbortSignal.any([signal, starterGone()])
  process.channel?.unref()
  const working = { ...lease, grace, concurrency, threads, tell, signal: ending }
  using _limit = limitEnd(ending, grace + lastSeconds)
  try {
    const left = await workAt(url, working, announce)
    if (left > 0) endWithin(1)
  } catch (error) {
    // It was stopped before it was connected, or when its database did not answer.
    if (!ending.aborted) throw error
  }
  return 0
}

const inThreads = (threads: number): string => (threads > 1 ? `, in ${threads} threads` : '')

/** The address of the database; it is never a local cluster, which has workers of its own. */
function databaseNamed(cluster: string | undefined): URL {
  if (cluster === undefined || cluster === '') {
    throw new MisuseError(
      'worker needs --cluster postgres://USER@HOST/DATABASE, or ESPALIER_CLUSTER',
    )
  }
  const address = readAddress(cluster)
  if (address.kind !== 'local') return address.url
  throw new MisuseError(
    'worker: local:N starts its own workers; a worker names the database: postgres://USER@HOST/DATABASE',
  )
}

/** Works for a database until it is stopped; gives how many attempts are still running then. */
async function workAt(url: URL, working: WorkerOptions, announce: () => void): Promise<number> {
  const { tell, signal } = working
  await using database = await openNamed('--cluster', () =>
    // One connection for large transfers, one for the heartbeat.
    openDatabase(connectionOf(url), { tell, signal, connections: 2 }),
  )
  await migrate(database)
  announce()
  return await work(database, working)
}

/** Seconds besides its grace in which a worker that was stopped must have ended. */
const lastSeconds = 10

/** Ends the process this long after the signal, unless what it stops has ended by then. */
function limitEnd(signal: AbortSignal, seconds: number): Disposable {
  let timer: NodeJS.Timeout | undefined
  const stopListening = whenAborted(signal, () => {
    timer = endWithin(seconds)
  })
  return {
    [Symbol.dispose]() {
      stopListening()
      clearTimeout(timer)
    },
  }
}

/** Ends the process by then: user code that does not listen to its signal may keep it for ever. */
function endWithin(seconds: number): NodeJS.Timeout {
  return setTimeout(() => process.exit(), seconds * 1000).unref()
}
