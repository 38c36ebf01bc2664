import type { Clock } from '../src/base/core/process/clock.ts'

/** A clock that moves only when it is told to, and wakes who slept until then. */
export function fakeClock({ turns = 8 } = {}) {
  let now = 0
  const sleeping = new Set<{ readonly until: number; wake(): void }>()
  const clock: Clock = {
    now: () => now,
    sleep: (milliseconds, signal) =>
      new Promise((resolve, reject) => {
        const sleeper = { until: now + milliseconds, wake: resolve }
        sleeping.add(sleeper)
        signal.addEventListener('abort', () => {
          sleeping.delete(sleeper)
          reject(signal.reason)
        })
      }),
  }
  /** What is asked over the network takes some turns of the loop. */
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) await new Promise(resolve => setImmediate(resolve))
  }
  return {
    clock,
    async pass(seconds: number) {
      await settle()
      for (let second = 0; second < seconds; second++) {
        now += 1000
        for (const sleeper of [...sleeping]) {
          if (sleeper.until > now) continue
          sleeping.delete(sleeper)
          sleeper.wake()
        }
        await settle()
      }
    },
  }
}
