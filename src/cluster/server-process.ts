// The process of `--cluster local:N` that keeps a PostgreSQL server: it ends with whoever started it.
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { loadServer } from './peers.ts'
import { linkLibraries } from './server-libraries.ts'

const [folder = '', wanted = '0'] = process.argv.slice(2)

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => probe.once('listening', resolve))
  const { port } = probe.address() as { readonly port: number }
  await new Promise(resolve => probe.close(resolve))
  return port
}

async function main(): Promise<void> {
  const { default: EmbeddedPostgres } = await loadServer()
  await linkLibraries()
  const port = Number(wanted) || (await freePort())
  const databaseDir = join(folder, 'data')
  let log = ''
  const server = new EmbeddedPostgres({
    databaseDir,
    user: 'espalier',
    password: process.env.ESPALIER_SERVER_PASSWORD ?? '',
    port,
    authMethod: 'scram-sha-256',
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=`],
    onLog: (text: unknown) => {
      log = `${log}${text}`.slice(-4000)
    },
    onError: (text: unknown) => {
      log = `${log}${text}`.slice(-4000)
    },
  })
  const stop = (): void => {
    void server.stop().finally(() => process.exit(0))
  }
  process.on('disconnect', stop)
  try {
    if (!existsSync(join(databaseDir, 'PG_VERSION'))) await server.initialise()
    await server.start()
    process.send?.({ port })
  } catch (error) {
    const problem =
      error instanceof Error ? error.message : log.trim().split('\n').slice(-3).join(' ')
    process.send?.({ problem })
    process.exit(1)
  }
}

await main()
