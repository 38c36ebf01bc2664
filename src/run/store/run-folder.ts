import { existsSync, readdirSync, statSync } from 'node:fs'
import { mkdir, readdir, readFile, rmdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Isolation } from '../../base/core/environment.ts'
import { StoreError } from '../../base/core/files/store-error.ts'
import { writeWhole } from '../../base/core/files/whole-file.ts'
import type { Json } from '../../base/core/ids.ts'
import { nearFile } from '../../base/core/names/near-file.ts'
import { commandLine } from '../../base/core/names/program-name.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { withoutSecretsInJson } from '../../base/core/process/secrets.ts'
import { type HeldLock, lockFile, mayBeHeld } from './lock.ts'
import { refuseOddFiles } from './odd-files.ts'

/** The version of the run folder's layout that this program writes; it reads all up to it. */
export const runFormat = 3

/** The manifest of a run folder, `run.json`. */
export interface RunManifest {
  readonly format: number
  /** The command that made it. */
  readonly kind: string
  /** Every setting as it was resolved. */
  readonly config: Readonly<Record<string, Json>>
  readonly versions: Readonly<Record<string, string>>
  /** `running` also if its writer died; `stopped` if it ended early in an orderly way. */
  readonly status: 'running' | 'stopped' | 'finished'
  /** Why it was stopped. */
  readonly reason?: string
  /** The isolation of code that the policy wrote, if such code was run. */
  readonly isolation?: Isolation
  /** The folder it was begun in, which the paths in its settings are relative to. */
  readonly directory?: string
  readonly started: string
  readonly finished?: string
  /** How long the journal of a finished run is; runs of earlier versions do not say it. */
  readonly journalBytes?: number
}

/** How a run stands: as its manifest says, or `interrupted` if its writer is gone without a word. */
export type RunStanding = RunManifest['status'] | 'interrupted'

/** How a run stands now. */
export async function standingOf(
  folder: string,
  { status }: Pick<RunManifest, 'status'>,
): Promise<RunStanding> {
  if (status !== 'running' || (await mayBeHeld(runPaths(folder).lock))) return status
  // It may have ended in order between the two.
  const { status: now } = await readManifest(folder)
  return now === 'running' ? 'interrupted' : now
}

/** The files of a run. */
export function runPaths(folder: string) {
  return {
    manifest: join(folder, 'run.json'),
    journal: join(folder, 'journal.frames'),
    /** What the journal holds, so that it need not be read whole; it can always be made again. */
    index: join(folder, 'journal.index'),
    unfinished: join(folder, 'unfinished.frames'),
    lock: join(folder, 'writer.lock'),
    events: join(folder, 'events.jsonl'),
    report: join(folder, 'report.json'),
    checkpoints: join(folder, 'checkpoints'),
    /** What attempts were shown, each image once under its digest. */
    images: join(folder, 'images'),
  }
}

/** The file that is written last into a checkpoint: its presence means that the checkpoint is complete. */
export const checkpointMark = 'training.json'

/** Whether a folder holds a run. */
export function isRun(folder: string): boolean {
  return existsSync(runPaths(folder).manifest)
}

/** `runs/<next number>`, four digits. */
export async function nextRunFolder(parent = 'runs'): Promise<string> {
  const entries = existsSync(parent) ? await readdir(parent) : []
  const numbers = entries.filter(entry => /^\d{4,9}$/.test(entry)).map(Number)
  return join(parent, String(Math.max(0, ...numbers) + 1).padStart(4, '0'))
}

/** A folder for a run that is about to begin. Disposing of it removes it if nothing was put into it. */
export interface ClaimedFolder extends AsyncDisposable {
  readonly out: string
}

/** The folder that was named, or `runs/<next number>`, made at once so that nobody else chooses it. */
export async function claimRunFolder(given?: string, parent = 'runs'): Promise<ClaimedFolder> {
  if (given !== undefined) return { out: given, [Symbol.asyncDispose]: async () => undefined }
  const madeParent = await makeFolder(parent)
  for (;;) {
    const out = await nextRunFolder(parent)
    const isOurs = await mkdir(out).then(
      () => true,
      (cause: NodeJS.ErrnoException) => {
        if (cause.code === 'EEXIST') return false
        throw new StoreError(out, { cause })
      },
    )
    if (!isOurs) continue
    return {
      out,
      async [Symbol.asyncDispose]() {
        // Neither folder is removed if it is not empty.
        await rmdir(out).catch(() => undefined)
        if (madeParent !== undefined) await rmdir(parent).catch(() => undefined)
      },
    }
  }
}

/** Makes a folder and those above it; gives the first that was not there. */
async function makeFolder(folder: string): Promise<string | undefined> {
  try {
    return await makeLevels(resolve(folder))
  } catch (cause) {
    throw new StoreError(folder, { cause: (await whyNotIn(folder)) ?? cause })
  }
}

/** Makes what is missing, level by level: in `/proc`, Node's own way never ends. */
async function makeLevels(folder: string): Promise<string | undefined> {
  if (existsSync(folder)) {
    // Says what is there if it is no folder.
    await mkdir(folder, { recursive: true })
    return undefined
  }
  const above = await makeLevels(dirname(folder))
  const isOurs = await mkdir(folder).then(
    () => true,
    (cause: NodeJS.ErrnoException) => {
      // Somebody else made it meanwhile.
      if (cause.code === 'EEXIST') return false
      throw cause
    },
  )
  return above ?? (isOurs ? folder : undefined)
}

/**
 * Why the first missing folder of a path cannot be made. Node answers ENOENT for the whole path where the
 * file system is read-only.
 */
async function whyNotIn(folder: string): Promise<unknown> {
  let missing = resolve(folder)
  while (!existsSync(dirname(missing))) missing = dirname(missing)
  try {
    await mkdir(missing)
    await rmdir(missing)
    return undefined
  } catch (cause) {
    return cause
  }
}

/**
 * Makes a run folder; one that already holds a run is refused. Returns the writer's lock, which is
 * taken before anything is read or written, so that of two processes only one begins the run.
 */
export async function createRun(folder: string, manifest: RunManifest): Promise<HeldLock> {
  const paths = runPaths(folder)
  if (isFile(folder)) {
    throw new SettingError(`${folder} is a file: --out names a folder for the run`)
  }
  await makeFolder(folder)
  const lock = await lockFile(paths.lock)
  try {
    if (existsSync(paths.manifest)) {
      const { status, kind } = await readManifest(folder)
      const isOpen = status !== 'finished' && ['roll', 'eval', 'train'].includes(kind)
      const goOn = isOpen ? `\`${commandLine('resume', folder)}\` goes on with it, or ` : ''
      throw new SettingError(`${folder} already holds a run: ${goOn}name another --out`)
    }
    await writeManifest(folder, manifest)
    return lock
  } catch (error) {
    await lock[Symbol.asyncDispose]()
    throw error
  }
}

/**
 * Writes `run.json` so that a reader never sees half of it. That of a finished run says how long its
 * journal is, so that a shorter one is noticed; any other run may still grow.
 */
export async function writeManifest(folder: string, manifest: RunManifest): Promise<void> {
  const { manifest: path, journal } = runPaths(folder)
  const { journalBytes: _before, ...rest } = manifest
  const bytes = manifest.status === 'finished' ? sizeOf(journal) : undefined
  const written = { ...rest, ...(bytes !== undefined && { journalBytes: bytes }) }
  await replaceFile(path, `${JSON.stringify(written, null, 2)}\n`)
}

/** How many bytes a file has; undefined if there is none. */
export function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size
}

/** Writes a file so that a reader sees the old or the new one, never half of it. */
export async function replaceFile(path: string, text: string): Promise<void> {
  try {
    await writeWhole(path, withoutSecretsInJson(text))
  } catch (cause) {
    throw new StoreError(path, { cause })
  }
}

function isFile(path: string): boolean {
  return existsSync(path) && !statSync(path).isDirectory()
}

/** A hint for a folder without a run: what it is instead, or where runs are. */
function whatInstead(folder: string): string {
  if (existsSync(join(folder, 'model.safetensors'))) {
    return `it is the folder of a model; \`${commandLine('doctor', folder)}\` looks at one`
  }
  if (isFile(folder)) return 'it is a file, and a run is a folder'
  if (existsSync(folder)) {
    const runs = readdirSync(folder).filter(name => existsSync(join(folder, name, 'run.json')))
    if (runs.length > 0) {
      return `it holds runs: ${runs
        .slice(-8)
        .map(name => join(folder, name))
        .join(', ')}`
    }
    return 'it has no run.json. Runs lie in runs/ unless --out said otherwise'
  }
  return `there is no such folder. Runs lie in runs/ unless --out said otherwise.${nearFile(folder)}`
}

/** Reads the manifest of a run folder. */
export async function readManifest(folder: string): Promise<RunManifest> {
  const { manifest: path } = runPaths(folder)
  if (!existsSync(path)) {
    throw new SettingError(`${folder} is not a run: ${whatInstead(folder)}`)
  }
  await refuseOddFiles(runPaths(folder))
  const manifest = parseManifest(await readFile(path, 'utf8'), path)
  if (manifest.format < 1 || manifest.format > runFormat) {
    const writer = manifest.versions?.espalier
    throw new Error(
      `${folder} has run format ${manifest.format}; this program reads formats 1 to ${runFormat}. ` +
        `espalier ${writer ?? `with format ${manifest.format}`} reads it`,
    )
  }
  return manifest
}

function parseManifest(text: string, path: string): RunManifest {
  try {
    const manifest = JSON.parse(text) as RunManifest
    if (typeof manifest?.format === 'number') return manifest
  } catch (cause) {
    throw new Error(`${path} is not JSON: ${(cause as Error).message}`, { cause })
  }
  throw new Error(`${path} does not say its format: it is not what espalier wrote`)
}
