import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import type { Elsewhere } from '../../run/run/elsewhere.ts'
import { gatherOptions, type RollParts } from '../../run/run/roll-groups.ts'
import type { RollOptions } from '../../run/run/roll-options.ts'
import { printOpened } from '../../run/run/served/opened-print.ts'
import { isWeighedAlike } from '../../run/run/threads/open-threads.ts'
import { weighingOf } from '../../run/run/threads/spreading.ts'
import type { Settings } from '../../run/settings/settings.ts'
import { readManifest } from '../../run/store/run-folder.ts'
import { openStorage } from '../../run/store/segments/storage.ts'
import { connectionOf, type readAddress } from './address.ts'
import type { Coordinator } from './coordinator.ts'
import { type Database, openDatabase } from './database.ts'
import { type LocalCluster, openLocal } from './local.ts'
import { runIdFile } from './local-folder.ts'
import { fingerprintOf } from './prints/fingerprint.ts'
import { isLed } from './run-row.ts'
import { migrate, sweep } from './schema.ts'

/** Where a cluster is, and what of the run its workers and its coordinator need. */
interface Entering {
  readonly where: ReturnType<typeof readAddress>
  /** The settings as workers get them. */
  readonly config: Readonly<Record<string, unknown>>
  /** The run's filters, by name if they have one. */
  readonly filters: NonNullable<Settings['filters']>
  /** Where workers put large trees. */
  readonly segments?: string
  readonly out?: string
  readonly tell?: (line: string) => void
}

/** Connects with the database of a cluster, and starts one if it is a local one. */
export async function enterCluster(
  parts: RollParts,
  { where, config, filters, segments, out, tell = () => {} }: Entering,
): Promise<Elsewhere & AsyncDisposable> {
  const { signal = new AbortController().signal } = parts
  const aside = segments === undefined ? undefined : await openAside(segments)
  const local =
    where.kind === 'local' ? await openLocal(where.workers, { out, tell, signal }) : undefined
  const url = where.kind === 'local' ? local!.url : where.url
  try {
    const database = await openMigrated(url, { tell, signal })
    const weighing = weighingOf({ filters } as RollOptions, parts.filters ?? [])
    const sent = weighing.isNamed ? { ...config, filters } : config
    const entered = {
      database,
      config: sent,
      weighs: weighing.isNamed,
      aside,
      out,
      tell,
      local,
      signal,
    }
    return openLate(parts, entered)
  } catch (error) {
    await local?.close()
    signal.throwIfAborted()
    throw error
  }
}

/** Where workers put large trees. */
type Aside = Awaited<ReturnType<typeof openAside>>

/** A folder is sent to workers with its whole path. */
async function openAside(segments: string) {
  const storage = await openStorage(segments)
  return { storage, address: segments.startsWith('s3://') ? segments : resolve(segments) }
}

/** The database with its schema up to date. */
async function openMigrated(
  url: URL,
  options: { readonly tell: (line: string) => void; readonly signal: AbortSignal },
): Promise<Database> {
  const database = await openDatabase(connectionOf(url), { ...options, connections: 6 })
  try {
    await migrate(database)
    await sweep(database)
    options.signal.throwIfAborted()
    return database
  } catch (error) {
    await database[Symbol.asyncDispose]()
    throw error
  }
}

interface Opening {
  readonly database: Database
  readonly config: Readonly<Record<string, unknown>>
  /** Whether workers have all that groups are weighed with. */
  readonly weighs: boolean
  readonly aside: Aside | undefined
  readonly out: string | undefined
  readonly tell: (line: string) => void
  readonly local: LocalCluster | undefined
  readonly signal: AbortSignal
}

/** The run is entered with its first attempt: before that its folder may not be there. */
function openLate(parts: RollParts, opening: Opening): Elsewhere & AsyncDisposable {
  const { database, config, aside, out, tell, local, signal } = opening
  const own = gatherOptions(parts)
  let opened: Promise<Coordinator> | undefined
  let inner: Elsewhere | undefined
  const enter = async () => {
    opened ??= runIdIn(out).then(async run => {
      const { Coordinator } = await import('./coordinator.ts')
      return await new Coordinator(database, {
        run,
        name: out === undefined ? run : basename(out),
        config: {
          settings: config,
          today: (parts.today ?? new Date()).toISOString(),
          ...(aside && { segments: aside.address }),
        },
        storage: aside?.storage,
        fingerprint: { code: fingerprintOf(config), opened: printOpened(parts) },
        parts,
        tell,
      }).enter()
    })
    inner = await opened
    return inner
  }
  return {
    get room() {
      return inner?.room ?? 0
    },
    async isLed() {
      const run = out === undefined ? undefined : await knownRun(out)
      return run === undefined ? undefined : await isLed(database, run)
    },
    watch(listen) {
      let stop: (() => void) | undefined
      let isOver = false
      void enter().then(
        each => {
          if (!isOver) stop = each.watch(listen)
        },
        () => undefined,
      )
      return () => {
        isOver = true
        stop?.()
      }
    },
    make: async (work, call) => await (await enter()).make(work, call),
    weighs: how => opening.weighs && isWeighedAlike(how, own),
    makeGroup: async (work, call) => await (await enter()).makeGroup!(work, call),
    taken: made => inner?.taken(made),
    pause: async () => await (await enter()).pause(),
    resume: async version => await (await enter()).resume(version),
    async [Symbol.asyncDispose]() {
      const isFinished = await isOver(out)
      try {
        await (await opened)?.end(isFinished)
      } catch (error) {
        // Whoever stops a run does not wait for a database that is away; resuming takes the run over.
        if (!signal.aborted) throw error
      } finally {
        await database[Symbol.asyncDispose]()
        await local?.close()
      }
    },
  }
}

/** A run without a folder is over when it is left. */
async function isOver(out: string | undefined): Promise<boolean> {
  if (out === undefined) return true
  const manifest = await readManifest(out).catch(() => undefined)
  return manifest?.status === 'finished'
}

/** The name of a run in the database, which its folder remembers. */
async function runIdIn(out: string | undefined): Promise<string> {
  if (out === undefined) return randomUUID()
  const known = await knownRun(out)
  if (known !== undefined) return known
  const run = randomUUID()
  await writeFile(runIdFile(out), `${JSON.stringify({ run })}\n`)
  return run
}

/** A new run has no name yet. */
async function knownRun(out: string): Promise<string | undefined> {
  try {
    const { run } = JSON.parse(await readFile(runIdFile(out), 'utf8')) as { readonly run: unknown }
    return typeof run === 'string' ? run : undefined
  } catch {
    return undefined
  }
}
