import { connectionOf, readAddress, shownAddress } from '../../cluster/address.ts'
import { openDatabase } from '../../cluster/database.ts'
import { migrate } from '../../cluster/schema.ts'
import { work } from '../../cluster/worker.ts'
import { openNamed } from '../../settings/open-named.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { counted } from '../listening.ts'

/** Rolls attempts of other machines' runs. */
export const workerCommand: Command = {
  name: 'worker',
  usage: '--cluster postgres://USER@HOST/DATABASE [--concurrency N]',
  about:
    'Takes attempts of every run whose coordinator uses the same database (--cluster there too), makes\n' +
    'and scores them, and writes them back. What a run is rolled with comes from its coordinator; code of\n' +
    'your own is read from this folder and must be the same as there. On SIGTERM it ends what it can\n' +
    'within --grace and hands back the rest. The password comes from PGPASSWORD, encryption from\n' +
    'PGSSLMODE and PGSSLROOTCERT, and the whole address from ESPALIER_CLUSTER where there is no --cluster.',
  examples: [
    'PGPASSWORD=… espalier worker --cluster postgres://espalier@db.internal/espalier --concurrency 64',
  ],
  settings: ['cluster', 'concurrency'],
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
  defaults: { concurrency: 16 },
  words: [0, 0],
  run: runWorker,
}

async function runWorker({ flags, own, terminal, signal, json }: Invocation): Promise<number> {
  const { cluster = process.env.ESPALIER_CLUSTER, concurrency = 16 } = flags
  if (cluster === undefined || cluster === '') {
    throw new MisuseError(
      'worker needs --cluster postgres://USER@HOST/DATABASE, or ESPALIER_CLUSTER',
    )
  }
  if (typeof concurrency !== 'number') {
    throw new MisuseError('worker: --concurrency is one number, attempts at one time')
  }
  const address = readAddress(cluster)
  if (address.kind === 'local') {
    throw new MisuseError(
      'worker: local:N starts its own workers; a worker names the database: postgres://USER@HOST/DATABASE',
    )
  }
  const { tell } = terminal
  const { url } = address
  await using database = await openNamed('--cluster', () =>
    // One connection for large transfers, one for the heartbeat.
    openDatabase(connectionOf(url), { tell, connections: 2 }),
  )
  await migrate(database)
  if (json) terminal.print(JSON.stringify({ cluster: shownAddress(url), concurrency }))
  else tell(`making attempts for ${shownAddress(url)}, ${concurrency} at one time`)
  const ending = { signal: AbortSignal.any([signal, startedBy()]) }
  const left = await work(database, {
    ...counted('lease', own.lease),
    ...counted('grace', own.grace),
    concurrency,
    tell,
    ...ending,
  })
  if (left > 0) endAnyway()
  return 0
}

/** Ends the process soon: user code that does not listen to its signal may keep it for ever. */
function endAnyway(): void {
  setTimeout(() => process.exit(), 1000).unref()
}

/** Aborts when the parent process is gone, if it gave us an IPC channel. */
function startedBy(): AbortSignal {
  const stop = new AbortController()
  if (process.channel) {
    process.on('disconnect', () =>
      stop.abort(new Error('the process that started this worker has ended')),
    )
    process.channel.unref()
  }
  return stop.signal
}
