const watched = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls back when a signal aborts, at once if it has, until the returned function is called. There
 * is one listener per signal however many requests share it: hundreds of samples of one run hang
 * on the same signal.
 */
export function watchAbort(signal: AbortSignal, onAbort: () => void): () => void {
  if (signal.aborted) {
    onAbort()
    return () => {}
  }
  const calls = watched.get(signal) ?? listen(signal)
  calls.add(onAbort)
  return () => calls.delete(onAbort)
}

function listen(signal: AbortSignal): Set<() => void> {
  const calls = new Set<() => void>()
  watched.set(signal, calls)
  const callAll = () => {
    for (const call of calls) call()
  }
  signal.addEventListener('abort', callAll, { once: true })
  return calls
}
