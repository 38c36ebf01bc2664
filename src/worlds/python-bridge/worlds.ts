import { isDeepStrictEqual } from 'node:util'
import { type Call, unlessStopped } from '../../base/core/call.ts'
import {
  type BridgeOptions,
  BridgeProcess,
  brokenPackage,
  NotAskedError,
} from './bridge-process.ts'

/** A world in a Python process. Its requests are kept, so that it can be rebuilt. */
export interface PythonWorld {
  readonly begun: unknown
  step(action: object, call: Call): Promise<unknown>
  /** What an attempt that was cut off is worth, if the package says so. */
  finish(call: Call): Promise<unknown>
  close(): Promise<void>
}

/** A slot for a process, which is started again when it has ended. */
interface Place {
  process: Promise<BridgeProcess> | undefined
  worlds: number
}

interface Asked {
  readonly operation: string
  readonly values: object
  readonly answer: unknown
}

/**
 * The processes that host worlds. When a process ends, only the world whose request was running is
 * lost: the others are rebuilt in the next process by repeating their requests.
 */
export class PythonWorlds implements AsyncDisposable {
  readonly #options: BridgeOptions
  readonly #places: Place[]
  #next = 0
  #isClosed = false
  /** How often a process was started. */
  starts = 0

  constructor(options: BridgeOptions, processes: number, first?: BridgeProcess) {
    this.#options = options
    this.#places = Array.from({ length: processes }, () => ({ process: undefined, worlds: 0 }))
    if (first) this.#places[0]!.process = Promise.resolve(first)
  }

  /** Opens a world in the process that has the fewest. */
  async open(task: object, seed: number, call: Call): Promise<PythonWorld> {
    call.signal.throwIfAborted()
    const place = this.#places.reduce((least, each) => (each.worlds < least.worlds ? each : least))
    place.worlds++
    const world = `w${this.#next++}`
    const asked: Asked[] = []
    let home: BridgeProcess | undefined
    const askOnce = async (operation: string, values: object): Promise<unknown> => {
      const process = await this.#processAt(place)
      if (home && home !== process) await bringBack(process, asked)
      home = process
      return await process.ask(operation, values)
    }
    const ask = async (operation: string, values: object = {}): Promise<unknown> => {
      const given = { world, ...values }
      for (;;) {
        try {
          const answer = await askOnce(operation, given)
          asked.push({ operation, values: given, answer })
          return answer
        } catch (cause) {
          // Another world ended the process while this request waited: go on in the next process.
          if (!(cause instanceof NotAskedError)) throw cause
        }
      }
    }
    const close = async (): Promise<void> => {
      place.worlds--
      // If the process is gone, the world is closed already.
      if (home?.isAlive) await home.ask('close', { world }).catch(() => {})
    }
    try {
      const begun = await unlessStopped(call, ask('open', { task, seed }))
      return {
        begun,
        step: (action, stepping) => unlessStopped(stepping, ask('step', { action })),
        finish: stepping => unlessStopped(stepping, ask('finish')),
        close,
      }
    } catch (cause) {
      await close()
      throw cause
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    for (const { process } of this.#places) (await process?.catch(() => undefined))?.stop()
  }

  async #processAt(place: Place): Promise<BridgeProcess> {
    const known = await place.process?.catch(() => undefined)
    if (known?.isAlive) return known
    if (this.#isClosed) throw brokenPackage('the environment was closed')
    const current = place.process
    // Somebody who waited for the same process may have started the next one already.
    if (current && (await current.catch(() => undefined)) !== known) return this.#processAt(place)
    this.starts++
    place.process = BridgeProcess.start(this.#options).then(({ process }) => process)
    return await place.process
  }
}

/** Repeats a world's requests; throws if an answer differs from the first time. */
async function bringBack(process: BridgeProcess, asked: readonly Asked[]): Promise<void> {
  for (const { operation, values, answer } of asked) {
    const again = await process.ask(operation, values)
    if (isDeepStrictEqual(again, answer)) continue
    throw brokenPackage(
      'its process was ended by another world, and it could not be brought back: it answers ' +
        `${operation} differently when asked again`,
    )
  }
}
