import type { Call } from '../core/call.ts'

/** Thrown when work was not done within its seconds. */
export class DeadlineError extends Error {
  override name = 'DeadlineError'

  constructor(seconds: number) {
    super(`not done within ${seconds} seconds`)
  }
}

// A timer's delay is a 32-bit number of milliseconds.
const longestDelay = 2 ** 31 - 1

/**
 * Runs `work` until it is done, its seconds are over or the caller stops it, whichever is first;
 * work that does not listen to the signal it is given is left behind.
 */
export function withDeadline<T>(
  seconds: number,
  { signal }: Call,
  work: (signal: AbortSignal) => T | PromiseLike<T>,
): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason)
  const stop = new AbortController()
  return new Promise<T>((resolve, reject) => {
    const end = (reason: unknown): void => {
      cleanUp()
      reject(reason)
      stop.abort(reason)
    }
    const onAbort = (): void => end(signal.reason)
    const delay = seconds * 1000
    const timer =
      delay <= longestDelay ? setTimeout(() => end(new DeadlineError(seconds)), delay) : undefined
    const cleanUp = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    const start = async (): Promise<T> => await work(stop.signal)
    start().then(resolve, reject).finally(cleanUp)
  })
}
