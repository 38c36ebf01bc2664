import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { keepSecret } from '../core/process/secrets.ts'

/** A database and workers on this machine, started for one run. */
export interface LocalCluster {
  readonly url: URL
  /** Ends the workers and the server; its data is kept if the run is not finished. */
  close(isFinished: boolean): Promise<void>
}

/** Starts a server and workers here. They end when this process does, whatever ended it. */
export async function openLocal(
  workers: number,
  { out, tell }: { readonly out: string | undefined; readonly tell: (line: string) => void },
): Promise<LocalCluster> {
  const folder = folderOf(out)
  const server = await openLocalServer(folder)
  tell(`PostgreSQL for ${workers} workers runs in ${folder}`)
  const children = Array.from({ length: workers }, () => startWorker(server.url))
  return {
    url: server.url,
    async close(isFinished) {
      await Promise.all(children.map(stopProcess))
      await server.close()
      if (isFinished) await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Where the server of a run keeps its data: beside other temporary files, as its own user must reach it. */
export function folderOf(out: string | undefined): string {
  const name = out === undefined ? randomBytes(8).toString('hex') : digest(resolve(out))
  return join(temporaryFolder(), `espalier-cluster-${name}`)
}

/** A temporary folder the server's user can enter: started by root, the server runs as another user. */
function temporaryFolder(): string {
  return process.getuid?.() === 0 ? '/tmp' : tmpdir()
}

const digest = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, 16)

/** A program of this folder, built or as source. */
const programOf = (name: string): string => {
  const { pathname } = new URL(import.meta.url)
  return fileURLToPath(
    new URL(`${name}${pathname.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
  )
}

/** Attempts at one time in a worker that is started here. */
const concurrency = 16

function startWorker(url: URL): ChildProcess {
  return spawn(
    process.execPath,
    [
      ...process.execArgv,
      programOf('../cli/main'),
      'worker',
      '--concurrency',
      String(concurrency),
      '--lease',
      '10',
    ],
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

/** Starts a server over the data in a folder, which is made where there is none. */
export async function openLocalServer(folder: string, port = 0): Promise<LocalServer> {
  await mkdir(folder, { recursive: true })
  // The server may run as another user, who must be able to enter the folder.
  await chmod(folder, 0o711)
  const password = await passwordIn(folder)
  const child = spawn(
    process.execPath,
    [...process.execArgv, programOf('./server-process'), folder, String(port)],
    {
      env: { ...process.env, TMPDIR: temporaryFolder(), ESPALIER_SERVER_PASSWORD: password },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      detached: true,
    },
  )
  const ended = once(child, 'exit')
  const [first] = await Promise.race([once(child, 'message'), ended])
  const { port: chosen, problem } =
    typeof first === 'object' && first !== null ? first : { problem: 'it ended at once' }
  if (chosen === undefined) {
    throw new Error(`--cluster local: PostgreSQL could not be started: ${problem}`)
  }
  const url = new URL(`postgres://espalier:${password}@127.0.0.1:${chosen}/postgres`)
  return { url, child, close: () => stopProcess(child) }
}

async function passwordIn(folder: string): Promise<string> {
  const path = join(folder, 'password')
  const known = await readFile(path, 'utf8').catch(() => undefined)
  const password = known ?? randomBytes(18).toString('base64url')
  if (known === undefined) await writeFile(path, password, { mode: 0o600 })
  keepSecret(password)
  return password
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  // Both end when the channel to whoever started them does.
  if (child.connected) child.disconnect()
  else child.kill('SIGTERM')
  await ended
}
