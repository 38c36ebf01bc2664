// The process that keeps a PostgreSQL server for `--cluster local:N` and `database`: it ends with whoever started it.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { appendFile, chmod, chown, readFile, rename, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { lockFolder, makeFolder, removeUnlessNeeded } from './local-folder.ts'
import { loadReachableServer } from './reachable-server.ts'
import { starterGone } from './starter.ts'

const gone = starterGone()
const [folder = '', wanted = '0', host = '127.0.0.1'] = process.argv.slice(2)
const data = join(folder, 'data')
const isRoot = process.getuid?.() === 0

/** The last of what the server said. */
let log = ''
const keepLog = (text: unknown): void => {
  log = `${log}${text}`.slice(-4000)
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => probe.once('listening', resolve))
  const { port } = probe.address() as { readonly port: number }
  await new Promise(resolve => probe.close(resolve))
  return port
}

/** How servers over some data are made, all at one port. */
async function serversAt(port: number) {
  const { default: EmbeddedPostgres } = await loadReachableServer(folder)
  const common = {
    user: 'espalier',
    password: process.env.ESPALIER_SERVER_PASSWORD ?? '',
    port,
    authMethod: 'scram-sha-256' as const,
    persistent: true,
    createPostgresUser: isRoot,
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    postgresFlags: ['-c', `listen_addresses=${host}`, '-c', `unix_socket_directories=`],
    onLog: keepLog,
    onError: keepLog,
  }
  return (databaseDir: string) => new EmbeddedPostgres({ databaseDir, ...common })
}

/**
 * Makes the data in a folder of its own, which becomes the server's when it is whole. The package writes
 * the password into a temporary file meanwhile: here it lies in that folder too, and ends with it.
 */
async function makeData(serverOver: Awaited<ReturnType<typeof serversAt>>): Promise<void> {
  const making = join(folder, 'making')
  await rm(making, { recursive: true, force: true })
  await makeFolder(making)
  if (isRoot) await giveToServer(making)
  Object.assign(process.env, { TMPDIR: making, TEMP: making })
  try {
    const server = serverOver(join(making, 'data'))
    await server.initialise()
    await rename(join(making, 'data'), data)
  } finally {
    await rm(making, { recursive: true, force: true })
  }
}

/** Where others may come from is decided by the address that it listens on; all of them need the password. */
async function admitOthers(): Promise<void> {
  const file = join(data, 'pg_hba.conf')
  const line = 'host all all all scram-sha-256'
  const rules = await readFile(file, 'utf8')
  if (!rules.includes(line)) await appendFile(file, `\n${line}\n`)
}

/** Lets only the user in that a server started by root runs as; on its first start there is none yet. */
async function giveToServer(path: string): Promise<void> {
  const numbers = ['-u', '-g'].map(which => promisify(execFile)('id', [which, 'postgres']))
  const found = await Promise.all(numbers).catch(() => undefined)
  const [user, group] = found?.map(({ stdout }) => Number(stdout)) ?? []
  if (user === undefined || group === undefined) return
  await chown(path, user, group)
  await chmod(path, 0o700)
}

/** Seconds for the server to end. */
const endSeconds = 10

/** Resolves when the server was killed, or has had its time: the package waits for an end that it missed. */
async function killed(): Promise<void> {
  const end = performance.now() + endSeconds * 1000
  while (performance.now() < end && !(await isDead())) await wait(100)
}

/** Whether the server has died without removing the file that names its process. */
async function isDead(): Promise<boolean> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => undefined)
  if (text === undefined) return false
  try {
    return !process.kill(Number.parseInt(text, 10), 0)
  } catch {
    return true
  }
}

/** Serves until whoever started this process is gone. */
async function serve(): Promise<void> {
  const port = Number(wanted) || (await freePort())
  const serverOver = await serversAt(port)
  if (!existsSync(join(data, 'PG_VERSION'))) await makeData(serverOver)
  if (gone.aborted) return
  await admitOthers()
  const server = serverOver(data)
  await server.start()
  tellStarter({ port })
  if (!gone.aborted) await once(gone, 'abort')
  await Promise.race([server.stop(), killed()])
}

function tellStarter(message: { readonly port: number } | { readonly problem: string }): void {
  if (process.connected) process.send?.(message)
}

async function main(): Promise<void> {
  try {
    await using _lock = await lockFolder(folder)
    await serve()
    await removeUnlessNeeded(folder)
  } catch (error) {
    tellProblem(error)
    process.exitCode = 1
  }
}

/** Says why there is no server: in the package's words, or the last that the server said. */
function tellProblem(error: unknown): void {
  const words = log.trim().split('\n').slice(-3).join(' ')
  const problem = error instanceof Error ? error.message.trim() : words
  tellStarter({ problem: problem || 'it ended at once, without a word' })
}

// A program that cannot be started fails outside of everything that waits for it.
process.on('uncaughtException', error => {
  tellProblem(error)
  process.exit(1)
})

await main()
process.exit()
