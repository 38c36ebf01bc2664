import { existsSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Json } from '../core/ids.ts'

/** The version of the run folder's layout that this program writes. */
export const runFormat = 1

/** What a run folder says of itself, in `run.json`. */
export interface RunManifest {
  readonly format: number
  /** The command that made it. */
  readonly kind: string
  /** Every setting as it was resolved. */
  readonly config: Readonly<Record<string, Json>>
  readonly versions: Readonly<Record<string, string>>
  /** `running` also where its writer died. */
  readonly status: 'running' | 'finished'
  readonly started: string
  readonly finished?: string
}

/** The files of a run. */
export function runPaths(folder: string) {
  return {
    manifest: join(folder, 'run.json'),
    journal: join(folder, 'journal.frames'),
    lock: join(folder, 'writer.lock'),
    events: join(folder, 'events.jsonl'),
    report: join(folder, 'report.json'),
    checkpoints: join(folder, 'checkpoints'),
  }
}

/** `runs/<next number>`, four digits. */
export async function nextRunFolder(parent = 'runs'): Promise<string> {
  const entries = existsSync(parent) ? await readdir(parent) : []
  const numbers = entries.filter(entry => /^\d{4,9}$/.test(entry)).map(Number)
  return join(parent, String(Math.max(0, ...numbers) + 1).padStart(4, '0'))
}

/** Makes a run folder; one that already holds a run is refused. */
export async function createRun(folder: string, manifest: RunManifest): Promise<void> {
  const paths = runPaths(folder)
  if (existsSync(paths.manifest)) {
    throw new Error(
      `${folder} already holds a run: \`espalier resume ${folder}\` goes on with it, or name another --out`,
    )
  }
  await mkdir(folder, { recursive: true })
  await writeManifest(folder, manifest)
}

/** Writes `run.json` so that a reader never sees half of it. */
export async function writeManifest(folder: string, manifest: RunManifest): Promise<void> {
  const { manifest: path } = runPaths(folder)
  await writeFile(`${path}.next`, `${JSON.stringify(manifest, null, 2)}\n`)
  await rename(`${path}.next`, path)
}

/** Reads what a run folder says of itself. */
export async function readManifest(folder: string): Promise<RunManifest> {
  const { manifest: path } = runPaths(folder)
  if (!existsSync(path)) {
    throw new Error(
      `${folder} is not a run: it has no run.json. Runs lie in runs/ unless --out said otherwise`,
    )
  }
  const manifest = JSON.parse(await readFile(path, 'utf8')) as RunManifest
  if (manifest.format !== runFormat) {
    throw new Error(
      `${folder} has run format ${manifest.format}; this program reads format ${runFormat}`,
    )
  }
  return manifest
}

/** Makes sure that one process writes to a run; a lock whose process is gone is taken over. */
export async function lockRun(folder: string): Promise<AsyncDisposable> {
  const { lock } = runPaths(folder)
  const owner = await readFile(lock, 'utf8').catch(() => undefined)
  if (owner !== undefined) {
    if (isAlive(Number(owner))) {
      throw new Error(`${folder} is being written by process ${owner}`)
    }
    await rm(lock, { force: true })
  }
  const handle = await open(lock, 'wx')
  await handle.writeFile(String(process.pid))
  await handle.close()
  return { [Symbol.asyncDispose]: () => rm(lock, { force: true }) }
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
