import { pause } from './timer.ts'

/** Time as a parameter, so that tests need not wait for it. */
export interface Clock {
  /** Milliseconds since some fixed moment; never runs backwards. */
  now(): number
  /** Waits; rejects with the signal's reason when that aborts. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>
}

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => performance.now(),
  sleep: pause,
}
