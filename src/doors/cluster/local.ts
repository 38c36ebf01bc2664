import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { unlessStopped } from '../../base/core/call.ts'
import { builtFile } from '../../base/core/process/package-folder.ts'
import { keepSecret } from '../../base/core/process/secrets.ts'
import {
  folderOf,
  makeFolder,
  makeRunFolder,
  removeUnlessNeeded,
  sweepFolders,
} from './local-folder.ts'

export { folderOf } from './local-folder.ts'

/** A database and workers on this machine, started for one run. */
export interface LocalCluster {
  readonly url: URL
  /** Ends the workers and the server; its data is kept if the run can go on with it. */
  close(): Promise<void>
}

/** For whom a server and workers are started here. */
export interface LocalOptions {
  /** The run folder. */
  readonly out: string | undefined
  readonly tell: (line: string) => void
  /** Stops starting them: what was started is ended. */
  readonly signal: AbortSignal
}

/** Starts a server and workers here. They end when this process does, whatever ended it. */
export async function openLocal(
  workers: number,
  { out, tell, signal }: LocalOptions,
): Promise<LocalCluster> {
  await sweepFolders()
  const folder = folderOf(out)
  await makeRunFolder(folder, out)
  try {
    const server = await openLocalServer(folder, { signal })
    tell(`PostgreSQL for ${workers} workers runs in ${folder}`)
    const children = Array.from({ length: workers }, () => startWorker(server.url))
    return {
      url: server.url,
      async close() {
        await Promise.all(children.map(stopWorker))
        await server.close()
        await removeUnlessNeeded(folder)
      },
    }
  } catch (error) {
    await removeUnlessNeeded(folder)
    throw error
  }
}

/** What a worker that is started here is told; its database ends with it, so that a long grace gains nothing. */
const workerFlags = { concurrency: 16, lease: 10, grace: 5 }

function startWorker(url: URL): ChildProcess {
  const flags = Object.entries(workerFlags).flatMap(([name, value]) => [`--${name}`, String(value)])
  return spawn(
    process.execPath,
    [...process.execArgv, fileURLToPath(builtFile('cli/main.js')), 'worker', ...flags],
    {
      // The address holds a password, which a list of processes would show.
      env: { ...process.env, ESPALIER_CLUSTER: url.href },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      // Ctrl-C is for the coordinator, which ends its workers in order.
      detached: true,
    },
  )
}

/** A PostgreSQL server in a process of its own. */
export interface LocalServer {
  readonly url: URL
  readonly child: ChildProcess
  close(): Promise<void>
}

/** Where a server listens. */
export interface ServerOptions {
  /** @default a free one */
  readonly port?: number
  /** The address it listens on. @default 127.0.0.1 */
  readonly host?: string
  readonly signal?: AbortSignal
}

/** Starts a server over the data in a folder, which is made if there is none. */
export async function openLocalServer(
  folder: string,
  { port = 0, host = '127.0.0.1', signal = new AbortController().signal }: ServerOptions = {},
): Promise<LocalServer> {
  signal.throwIfAborted()
  await makeFolder(folder)
  const password = await passwordIn(folder)
  const child = spawn(
    process.execPath,
    [
      ...process.execArgv,
      fileURLToPath(builtFile('doors/cluster/server-process.js')),
      folder,
      String(port),
      host,
    ],
    {
      env: { ...process.env, ESPALIER_SERVER_PASSWORD: password },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      detached: true,
    },
  )
  try {
    const chosen = await unlessStopped({ signal }, portOf(child))
    const url = new URL(`postgres://espalier:${password}@127.0.0.1:${chosen}/postgres`)
    return { url, child, close: () => stopProcess(child) }
  } catch (error) {
    await stopProcess(child)
    throw error
  }
}

/** The port that a server says it listens on. */
async function portOf(child: ChildProcess): Promise<number> {
  const [first] = await Promise.race([once(child, 'message'), once(child, 'exit')])
  const { port, problem } =
    typeof first === 'object' && first !== null ? first : { problem: 'it ended at once' }
  if (port !== undefined) return port
  throw new Error(`PostgreSQL could not be started: ${problem}`)
}

async function passwordIn(folder: string): Promise<string> {
  const path = join(folder, 'password')
  const known = await readFile(path, 'utf8').catch(() => undefined)
  const password = known ?? randomBytes(18).toString('base64url')
  if (known === undefined) await writeFile(path, password, { mode: 0o600 })
  keepSecret(password)
  return password
}

/** Seconds after which a worker that should end is ended: code of users may keep it for ever. */
const workerSeconds = workerFlags.grace + 10

async function stopWorker(child: ChildProcess): Promise<void> {
  const timer = setTimeout(() => child.kill('SIGKILL'), workerSeconds * 1000)
  await stopProcess(child)
  clearTimeout(timer)
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const ended = once(child, 'exit')
  // Both end when the channel to whoever started them does.
  if (child.connected) child.disconnect()
  else child.kill('SIGTERM')
  await ended
}
