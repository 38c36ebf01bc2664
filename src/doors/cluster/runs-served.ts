import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeCause } from '../../base/core/failure.ts'
import { withoutSecrets } from '../../base/core/process/secrets.ts'
import { rollOptionsOf } from '../../run/run/roll-options.ts'
import { openServedRun, type TurnsKept, type Width } from '../../run/run/served/served-run.ts'
import type { Crew } from '../../run/run/threads/crew.ts'
import { checkSettings } from '../../run/settings/check-settings.ts'
import { needed } from '../../run/settings/open-named.ts'
import {
  type Settings,
  type SettingsInput,
  withDefaults,
  withoutUndefined,
} from '../../run/settings/settings.ts'
import { openStorage } from '../../run/store/segments/storage.ts'
import type { Database } from './database.ts'
import { makeImageTable } from './images/image-table.ts'
import { makeImageSender } from './images/send-images.ts'
import type { Makers } from './leased-attempts.ts'
import type { Leased, Leasing, RunState } from './leasing.ts'
import { openMakers, type WorkerThreads } from './makers.ts'
import { differences, type Fingerprint, fingerprintOf } from './prints/fingerprint.ts'
import type { RunConfig, RunPrint } from './run-row.ts'
import { Turns } from './turns.ts'

/** A run that is open here. */
interface ServedHere extends Makers, AsyncDisposable {
  readonly makers: Crew
}

interface Known {
  readonly opening: Promise<ServedHere | undefined>
  /** The weights that it samples from. */
  version: number | null
  /** The number of the run's last change that was followed. */
  epoch: number
}

/** Seconds after which a run that could not be opened is tried again. */
const reopenSeconds = 30

/** What a run is opened with in a worker. */
export interface Serving {
  readonly concurrency: number
  /** @default 1 */
  readonly threads?: WorkerThreads
  readonly database: Database
  readonly tell: (line: string) => void
  /** What of a run is held here. */
  readonly held: (run: string) => readonly Leased[]
}

/** How one run is served. */
interface OneServing extends Serving {
  readonly run: string
  readonly leasing: () => Leasing
  packWeights(): Promise<Uint8Array | null>
}

/** The runs that a worker has opened, each as its coordinator last said that it is. */
export class RunsServed implements AsyncDisposable {
  readonly #leasing: () => Leasing
  readonly #serving: Serving
  readonly #runs = new Map<string, Known>()
  readonly #told = new Set<string>()

  constructor(leasing: () => Leasing, serving: Serving) {
    this.#leasing = leasing
    this.#serving = serving
  }

  /** Opens a run if it is new, and pauses, resumes and changes weights as it says. */
  async follow(state: RunState): Promise<Makers | undefined> {
    const { id } = state
    const known = this.#runs.get(id) ?? { opening: this.#open(id), version: null, epoch: -1 }
    this.#runs.set(id, known)
    const served = await known.opening
    if (!served) return undefined
    await this.#change(state, known, served.makers)
    return served
  }

  async #change({ id, epoch, ...state }: RunState, known: Known, makers: Crew): Promise<void> {
    if (known.epoch === epoch) return
    known.epoch = epoch
    if (state.paused) {
      // If this cannot be confirmed, the worker counts as lost and notices by its heartbeat.
      const confirm = (): Promise<void> => this.#leasing().acknowledge(id, epoch)
      void makers
        .pause()
        .then(confirm)
        .catch(() => undefined)
      return
    }
    const isNew = state.version !== known.version
    known.version = state.version
    await makers.resume(isNew ? (state.version ?? undefined) : undefined)
  }

  /** Closes the runs that are over. */
  async leaveOthers(states: readonly RunState[], isHeld: (run: string) => boolean): Promise<void> {
    for (const [run, { opening }] of this.#runs) {
      if (isHeld(run) || states.some(({ id }) => id === run)) continue
      this.#runs.delete(run)
      // Why one could not be opened was said to whoever followed it.
      const served = await opening.catch(() => undefined)
      await served?.[Symbol.asyncDispose]()
    }
  }

  /** Joins all runs again under a new name. */
  async attendAgain(): Promise<void> {
    for (const [run, known] of this.#runs) {
      await this.#leasing().attend(run)
      known.epoch = -1
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leaveOthers([], () => false)
  }

  async #open(run: string): Promise<ServedHere | undefined> {
    // Join before reading its state: from then on the coordinator waits for this worker.
    await this.#leasing().attend(run)
    const row = await this.#leasing().settingsOf(run)
    if (!row) return undefined
    try {
      return await openRun(row.config, row.fingerprint, {
        ...this.#serving,
        run,
        packWeights: () => this.#leasing().weights(run),
        leasing: this.#leasing,
      })
    } catch (error) {
      const reason = withoutSecrets(describeCause(error))
      if (!this.#told.has(reason)) this.#serving.tell(`run ${row.name} is not taken on: ${reason}`)
      this.#told.add(reason)
      await this.#leasing().refuse(run, reason)
      setTimeout(() => this.#runs.delete(run), reopenSeconds * 1000).unref()
      return undefined
    }
  }
}

/** Opens a run if code, files and settings are what its coordinator has, and so is what is opened from them. */
async function openRun(
  { settings, today, segments }: RunConfig,
  there: RunPrint,
  serving: OneServing,
): Promise<ServedHere> {
  const input = checkSettings(settings, 'the settings of the run') as SettingsInput
  refuseDifferent(there.code, fingerprintOf(input))
  const values = withDefaults(input)
  const options = { ...rollOptionsOf(values), today: new Date(today) }
  const environment = needed(values, 'environment')
  const { onUpdate } = values
  const { threads = 1 } = serving
  const width = widthOf(values, serving.concurrency)
  const aside = segments === undefined ? undefined : await openAside(segments, values, serving)
  const { segment, turns, keeping } = aside ?? {}
  const scratch = await mkdtemp(join(tmpdir(), 'espalier-images-'))
  const removeImages = (): Promise<void> => rm(scratch, { recursive: true, force: true })
  const imageFolder = join(scratch, 'images')
  const start = { onUpdate, imageFolder }
  const how = { ...serving, ...start, concurrency: width, turns: keeping }
  const served = await openServedRun(environment, options, how).catch(async error => {
    await removeImages()
    throw error
  })
  const close = async (): Promise<void> => {
    await served[Symbol.asyncDispose]()
    await removeImages()
  }
  try {
    refuseDifferent(there.opened, served.print)
    const opening = { ...serving, environment, options, served, width, start, threads }
    const makers = openMakers({ ...opening, turns: keeping })
    const table = makeImageTable(serving.database, serving.run)
    return {
      makers,
      segment,
      turns,
      sendImages: makeImageSender({ folder: imageFolder, table, segment }),
      make: (work, call) => makers.make(work, call),
      makeGroup: (work, call) => makers.makeGroup(work, call),
      async [Symbol.asyncDispose]() {
        await makers[Symbol.asyncDispose]()
        await segment?.[Symbol.asyncDispose]()
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Where this worker puts large trees and turns of unfinished attempts. */
async function openAside(
  address: string,
  { unfinished }: Settings,
  { run, leasing, held }: OneServing,
) {
  const storage = await openStorage(address)
  const name = `${run}/${randomUUID()}`
  const segment = storage.write(name)
  if (unfinished === 'restart') return { segment }
  const turns = new Turns({ leasing, run, storage, held: () => held(run) })
  const onKept: TurnsKept['onKept'] = places => turns.keep(places)
  return { segment, turns, keeping: { address, name: `${name}-turns`, onKept } }
}

function refuseDifferent(there: Fingerprint, here: Fingerprint): void {
  const different = differences(there, here)
  if (different.length > 0) throw new Error(`it is not the same here: ${different.join('; ')}`)
}

/** A worker's own width, and the lanes that the run narrows. */
function widthOf({ concurrency }: Settings, rollouts: number): Width {
  if (typeof concurrency === 'number') return rollouts
  const { rollouts: _, ...lanes } = concurrency
  return { policy: rollouts, ...withoutUndefined(lanes), rollouts }
}
