import type { Call } from '../../base/core/call.ts'
import { onAbort } from '../../base/core/call.ts'
import { makeLane } from '../../base/core/lane.ts'
import { brokenWorld } from './session.ts'

/** A full server's answer: how many sessions it has and may have, if it says so. */
export interface Full {
  readonly active?: number
  readonly most?: number
}

/** How a line waits. */
export interface LineOptions {
  /** The server, for messages. */
  readonly url: string
  /** Seconds without anything happening in any world of ours until waiting is given up. */
  readonly patience: number
  /** Called once, when the first attempt has to wait. */
  readonly warn?: ((text: string) => void) | undefined
}

const shortestPause = 50
const longestPause = 5000

/**
 * Where attempts wait for a session of a full server, in order, as long as it takes. Waiting ends with
 * an error only if every session that we hold stands still: then the sessions may be held by attempts
 * that themselves wait for one of those in line, as happens with forks.
 */
export class Line {
  readonly #options: LineOptions
  /** Only the first in line asks the server again. */
  readonly #door = makeLane('a session of the server', 1)
  #held = 0
  #lastMove = performance.now()
  #wake: (() => void) | undefined
  #hasWarned = false

  constructor(options: LineOptions) {
    this.#options = options
  }

  /** To be called whenever something happens in a world of ours. */
  moved(): void {
    this.#lastMove = performance.now()
  }

  /** To be called when a session was given back. */
  left(): void {
    this.#held--
    this.moved()
    this.#wake?.()
  }

  /** Waits in line and opens with `open`, which returns what it opened or that the server is full. */
  async enter<T>(call: Call, open: () => Promise<{ readonly opened: T } | Full>): Promise<T> {
    if (this.#door.running + this.#door.waiting === 0) {
      const first = await open()
      if ('opened' in first) return this.#count(first.opened)
      this.#warn(first)
    }
    return await this.#door.run(call, async () => {
      for (let pause = shortestPause; ; pause = Math.min(2 * pause, longestPause)) {
        const next = await open()
        if ('opened' in next) return this.#count(next.opened)
        this.#warn(next)
        this.#checkPatience(next)
        await this.#pause(pause, call)
      }
    })
  }

  #count<T>(opened: T): T {
    this.#held++
    this.moved()
    return opened
  }

  #warn({ most }: Full): void {
    if (this.#hasWarned) return
    this.#hasWarned = true
    const room = most === undefined ? '' : ` (${most} at one time)`
    this.#options.warn?.(
      `${this.#options.url} has no free session${room}: attempts wait in line. Start it with more, ` +
        'by max_concurrent_envs, or lower --concurrency.',
    )
  }

  #checkPatience({ most }: Full): void {
    const { url, patience } = this.#options
    if (this.#held === 0 || performance.now() - this.#lastMove < patience * 1000) return
    throw brokenWorld(
      `${url} has no free session${most === undefined ? '' : ` of its ${most}`}, and in the ` +
        `${this.#held} held here nothing happened for ${patience} seconds: forks and checks hold a ` +
        'world while they open another. Start the server with max_concurrent_envs above that.',
    )
  }

  #pause(milliseconds: number, { signal }: Call): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer)
        stopListening()
        this.#wake = undefined
        resolve()
      }
      const timer = setTimeout(end, milliseconds)
      const stopListening = onAbort(signal, () => {
        end()
        reject(signal.reason)
      })
      this.#wake = end
    })
  }
}
