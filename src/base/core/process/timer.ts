import { onAbort } from '../call.ts'

/** The most milliseconds that a timer of the machine waits; one that is asked for more fires at once. */
const longestDelay = 2 ** 31 - 1

/** The milliseconds of so many seconds for a timer that others start, which waits no longer than it can. */
export const delayOf = (seconds: number): number => Math.min(seconds * 1000, longestDelay)

/** `setTimeout` for any number of milliseconds, `Infinity` too: what is too long for one timer is waited for in parts. */
export function startTimer(act: () => void, milliseconds: number): NodeJS.Timeout {
  if (milliseconds <= longestDelay) return setTimeout(act, milliseconds)
  let parts = Math.ceil(milliseconds / longestDelay)
  const delay = Number.isFinite(parts) ? Math.ceil(milliseconds / parts) : longestDelay
  const timer = setTimeout(() => {
    if (--parts > 0) timer.refresh()
    else act()
  }, delay)
  return timer
}

/** Waits; rejects with the signal's reason when that aborts. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const timer = startTimer(() => {
      release()
      resolve()
    }, milliseconds)
    const release = onAbort(signal, () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
}
