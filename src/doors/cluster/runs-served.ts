import { describeCause } from '../../base/core/failure.ts'
import { withoutSecrets } from '../../base/core/process/secrets.ts'
import { rollOptionsOf } from '../../run/run/roll-options.ts'
import { openServedRun, type ServedRun, type Width } from '../../run/run/served/served-run.ts'
import { checkSettings } from '../../run/settings/check-settings.ts'
import { needed } from '../../run/settings/open-named.ts'
import {
  type Settings,
  type SettingsInput,
  withDefaults,
  withoutUndefined,
} from '../../run/settings/settings.ts'
import { differences, type Fingerprint, fingerprintOf } from './fingerprint.ts'
import type { Leasing, RunState } from './leasing.ts'
import type { RunConfig, RunPrint } from './run-row.ts'

interface Known {
  readonly opening: Promise<ServedRun | undefined>
  isPaused: boolean
  /** The number of the run's last change that was followed. */
  epoch: number
}

/** Seconds after which a run that could not be opened is tried again. */
const reopenSeconds = 30

/** What a run is opened with in a worker. */
export interface Serving {
  readonly concurrency: number
  readonly tell: (line: string) => void
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
  async follow(state: RunState): Promise<ServedRun | undefined> {
    const { id, epoch } = state
    const known = this.#runs.get(id) ?? { opening: this.#open(id), isPaused: false, epoch: -1 }
    this.#runs.set(id, known)
    const served = await known.opening
    if (!served || known.epoch === epoch) return served
    known.epoch = epoch
    if (state.paused) {
      if (known.isPaused) await this.#leasing().acknowledge(id, epoch)
      known.isPaused = true
      served.pause(() => this.#leasing().acknowledge(id, epoch))
      return served
    }
    known.isPaused = false
    const weights = (): Promise<Buffer | null> => this.#leasing().weights(id)
    await served.resume({ version: state.version, weights })
    return served
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

  async #open(run: string): Promise<ServedRun | undefined> {
    // Join before reading its state: from then on the coordinator waits for this worker.
    await this.#leasing().attend(run)
    const row = await this.#leasing().settingsOf(run)
    if (!row) return undefined
    try {
      return await openRun(row.config, row.fingerprint, this.#serving)
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
  { settings, today }: RunConfig,
  there: RunPrint,
  serving: Serving,
): Promise<ServedRun> {
  const input = checkSettings(settings, 'the settings of the run') as SettingsInput
  refuseDifferent(there.code, fingerprintOf(input))
  const values = withDefaults(input)
  const options = { ...rollOptionsOf(values), today: new Date(today) }
  const served = await openServedRun(needed(values, 'environment'), options, {
    ...serving,
    concurrency: widthOf(values, serving.concurrency),
    onUpdate: values.onUpdate,
  })
  try {
    refuseDifferent(there.opened, served.print)
    return served
  } catch (error) {
    await served[Symbol.asyncDispose]()
    throw error
  }
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
