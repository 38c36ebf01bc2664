import { type Call, onAbort } from '../call.ts'
import { startPatientTimer } from './absences.ts'

/** Thrown when work was not done within its seconds. */
export class DeadlineError extends Error {
  override name = 'DeadlineError'

  readonly seconds: number

  constructor(seconds: number) {
    super(`not done within ${seconds} seconds`)
    this.seconds = seconds
  }
}

/** Gives the signal that stops the work; it is created on first use, as most work never needs it. */
export type Stopping = () => AbortSignal

/**
 * Runs `work` until it is done, its seconds are over or the caller stops it, whichever is first; work
 * that ignores its signal is not waited for. A result that is not a promise needs no timer.
 */
export async function withDeadline<T>(
  seconds: number,
  { signal }: Call,
  work: (stopping: Stopping) => T | PromiseLike<T>,
): Promise<T> {
  signal.throwIfAborted()
  const stop = makeStop()
  const begun = work(stop.signal)
  if (!isPromise(begun)) return begun
  return await new Promise<T>((resolve, reject) => {
    const end = (reason: unknown): void => {
      cleanUp()
      reject(reason)
      stop.abort(reason)
    }
    const leave = (): void => end(signal.reason)
    const timer = startPatientTimer(() => end(new DeadlineError(seconds)), seconds * 1000)
    const cleanUp = (): void => {
      timer.clear()
      stopListening()
    }
    const stopListening = onAbort(signal, leave)
    begun.then(resolve, reject).then(cleanUp)
    // If the signal aborted while `work` began, its event is over and has to be handled here.
    if (signal.aborted) leave()
  })
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function'
}

function makeStop(): { readonly signal: Stopping; abort(reason: unknown): void } {
  let controller: AbortController | undefined
  let ended: { readonly reason: unknown } | undefined
  return {
    signal() {
      if (!controller) {
        controller = new AbortController()
        if (ended) controller.abort(ended.reason)
      }
      return controller.signal
    },
    abort(reason) {
      ended = { reason }
      controller?.abort(reason)
    },
  }
}

/** How long a piece of somebody else's work may take. */
export interface Bounds extends Call {
  readonly seconds: number
}

/** Something was not done in time. */
export class TookTooLong extends Error {}

/** What `work` gives; throws, naming it, if it takes longer than its seconds. */
export async function inTime<T>(
  what: string,
  { seconds, signal }: Bounds,
  work: (stopping: Stopping) => T | PromiseLike<T>,
): Promise<T> {
  try {
    return await withDeadline(seconds, { signal }, work)
  } catch (cause) {
    if (!(cause instanceof DeadlineError)) throw cause
    throw new TookTooLong(`${what} took longer than ${seconds} s`, { cause })
  }
}

/** Most seconds that disposing of something may take: stopping a container takes ten. */
export const disposalSeconds = 30

const { signal: neverStops } = new AbortController()

/** Disposes of something, within bounds also after its caller was stopped: what it holds is given back. */
export async function disposeInTime(
  what: string,
  held: Partial<AsyncDisposable>,
  seconds = disposalSeconds,
): Promise<void> {
  const bounds = { seconds: Math.min(seconds, disposalSeconds), signal: neverStops }
  await inTime(`disposing of ${what}`, bounds, () => held[Symbol.asyncDispose]?.())
}
