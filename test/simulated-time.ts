import { setImmediate as nextTurn } from 'node:timers/promises'

/** Time that passes only when nothing else is left to do, so that what takes long is simulated in no time. */
export interface SimulatedTime {
  /** Seconds since the beginning. */
  now(): number
  /** Waits so many seconds; rejects when the signal aborts. */
  wait(seconds: number, signal?: AbortSignal): Promise<void>
  /** Lets time pass until the work is over. */
  during<T>(work: Promise<T>): Promise<T>
}

interface Waiter {
  readonly at: number
  readonly order: number
  readonly wake: () => void
}

/** Turns of the event loop after which whatever could go on has gone on. */
const settling = 6

/** Opens a time that stands at 0. */
export function openSimulatedTime(): SimulatedTime {
  const waiting = new Set<Waiter>()
  let now = 0
  let order = 0
  async function pass(): Promise<void> {
    for (let turn = 0; turn < settling; turn++) await nextTurn()
    const [next] = [...waiting].sort((one, other) => one.at - other.at || one.order - other.order)
    if (!next) return
    now = next.at
    waiting.delete(next)
    next.wake()
  }
  return {
    now: () => now,
    wait: (seconds, signal) =>
      new Promise((resolve, reject) => {
        const waiter = { at: now + seconds, order: order++, wake: resolve }
        waiting.add(waiter)
        signal?.addEventListener('abort', () => {
          waiting.delete(waiter)
          reject(signal.reason)
        })
      }),
    async during(work) {
      let isOver = false
      const end = (): void => {
        isOver = true
      }
      work.then(end, end)
      while (!isOver) await pass()
      return await work
    },
  }
}
