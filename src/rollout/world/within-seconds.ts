import { type Call, joinSignals, unlessStopped } from '../../core/call.ts'

/** How long work of somebody else's code may take, and what it is called where it takes longer. */
export interface Bound extends Call {
  readonly what: string
  readonly seconds: number
}

/**
 * What `work` gives, unless its seconds are over or the caller stops it: the signal it was given then
 * aborts, and it is not waited for. Work that is done at once needs no timer.
 */
export async function withinSeconds<T>(
  { what, seconds, signal }: Bound,
  work: (call: Call) => T | PromiseLike<T>,
): Promise<T> {
  const stop = new AbortController()
  const { release } = joinSignals([signal], stop)
  let timer: NodeJS.Timeout | undefined
  try {
    const begun = work({ signal: stop.signal })
    if (!isPromise(begun)) return begun
    const end = (): void => stop.abort(new Error(`${what} took longer than ${seconds} s`))
    timer = setTimeout(end, seconds * 1000)
    return await unlessStopped({ signal: stop.signal }, begun)
  } finally {
    clearTimeout(timer)
    release()
  }
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function'
}
