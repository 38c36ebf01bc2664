import { type Call, unlessStopped } from '../../base/core/call.ts'

/** For work that nobody who waits for it may stop; it has limits of its own. */
export const neverStopped: Call = { signal: new AbortController().signal }

/**
 * Work of which whoever asks for the same shares one result. A caller that is stopped stops it for
 * nobody else, and what failed is tried again when somebody asks the next time.
 */
export function makeShared<T>(
  work: (key: string) => Promise<T>,
): (key: string, call: Call) => Promise<T> {
  const shared = new Map<string, Promise<T>>()
  return (key, call) => {
    const known = shared.get(key)
    if (known) return unlessStopped(call, known)
    const begun = work(key)
    shared.set(key, begun)
    begun.catch(() => shared.delete(key))
    return unlessStopped(call, begun)
  }
}
