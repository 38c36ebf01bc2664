import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { keepSecretsIn, withoutSecrets } from '../core/process/secrets.ts'
import { SettingError } from '../names/setting-error.ts'
import type { Elsewhere } from '../run/elsewhere.ts'
import type { RollParts } from '../run/roll-groups.ts'
import type { OpenElsewhere } from '../run/roll-options.ts'
import type { Settings } from '../settings/settings.ts'
import { readManifest } from '../store/run-folder.ts'
import { connectionOf, readAddress } from './address.ts'
import type { Coordinator } from './coordinator.ts'
import { type Database, openDatabase } from './database.ts'
import { fingerprintOf } from './fingerprint.ts'
import { openLocal } from './local.ts'
import { migrate, sweep } from './schema.ts'

/** What a cluster needs to know of the run that it rolls. */
export interface ClusterOptions {
  /** The settings that workers open the run by: every part of it is named in them. */
  readonly config: Settings
  /** The run folder; without one nothing can be resumed. */
  readonly out?: string
  readonly tell?: (line: string) => void
}

/** Settings that only the coordinator uses; they are not sent to workers. */
const ownSettings = new Set([
  'cluster',
  'out',
  'sinks',
  'notify',
  'traces',
  'metricsPort',
  'metrics',
  'tasks',
  'heldOut',
  'results',
  'filters',
  'budget',
])

/**
 * Has the attempts of a run made by the workers of a cluster: pass it as `elsewhere`.
 *
 * @example
 * roll('calculator', 64, { policy, elsewhere: openCluster('postgres://…', { config }) })
 */
export function openCluster(address: string, options: ClusterOptions): OpenElsewhere {
  const where = readAddress(address)
  const config = sentConfig(options.config)
  return async parts => {
    const { out, tell = () => {} } = options
    const local = where.kind === 'local' ? await openLocal(where.workers, { out, tell }) : undefined
    const url = where.kind === 'local' ? local!.url : where.url
    try {
      const database = await openDatabase(connectionOf(url), { tell, connections: 6 })
      await migrate(database)
      await sweep(database)
      return openLate(parts, { database, config, out, tell, local })
    } catch (error) {
      await local?.close(false)
      throw error
    }
  }
}

/** The settings that workers get; secrets stay in each machine's environment variables. */
function sentConfig(values: Settings): Readonly<Record<string, unknown>> {
  if (values.record !== undefined) {
    throw new SettingError(
      '--record: samples are drawn by the workers of a cluster, and not recorded there. Record in one process',
    )
  }
  const sent = Object.entries(values).filter(
    ([name, value]) => value !== undefined && !ownSettings.has(name),
  )
  const text = JSON.stringify(Object.fromEntries(sent))
  keepSecretsIn(values)
  if (withoutSecrets(text) !== text) {
    throw new SettingError(
      '--cluster: a setting holds a secret, and settings are kept in the database. Put it into a variable of the workers, such as --key-variable names',
    )
  }
  return JSON.parse(text) as Record<string, unknown>
}

interface Opening {
  readonly database: Database
  readonly config: Readonly<Record<string, unknown>>
  readonly out: string | undefined
  readonly tell: (line: string) => void
  readonly local: Awaited<ReturnType<typeof openLocal>> | undefined
}

/** The run is entered with its first attempt: before that its folder may not be there. */
function openLate(parts: RollParts, opening: Opening): Elsewhere & AsyncDisposable {
  const { database, config, out, tell, local } = opening
  let opened: Promise<Coordinator> | undefined
  let inner: Elsewhere | undefined
  const enter = async () => {
    opened ??= runIdIn(out).then(async run => {
      const { Coordinator } = await import('./coordinator.ts')
      const name = out === undefined ? run : basename(out)
      const fingerprint = fingerprintOf(config)
      return await new Coordinator(database, {
        run,
        name,
        config,
        fingerprint,
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
    taken: tree => inner?.taken(tree),
    pause: async () => await (await enter()).pause(),
    resume: async version => await (await enter()).resume(version),
    async [Symbol.asyncDispose]() {
      const isFinished = await isOver(out)
      try {
        await (await opened)?.end(isFinished)
      } finally {
        await database[Symbol.asyncDispose]()
        await local?.close(isFinished)
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
  const path = join(out, 'cluster.json')
  try {
    const { run } = JSON.parse(await readFile(path, 'utf8')) as { readonly run: string }
    if (typeof run === 'string') return run
  } catch {
    // A new run has none.
  }
  const run = randomUUID()
  await writeFile(path, `${JSON.stringify({ run })}\n`)
  return run
}
