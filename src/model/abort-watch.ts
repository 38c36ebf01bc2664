/**
 * Calls back when a signal aborts, with one listener per signal however many requests share it:
 * hundreds of samples of one run hang on the same signal.
 */
export class AbortWatch {
  readonly #watched = new WeakMap<AbortSignal, Set<() => void>>()

  /** Watches until the returned function is called; a signal that has aborted calls at once. */
  watch(signal: AbortSignal, onAbort: () => void): () => void {
    if (signal.aborted) {
      onAbort()
      return () => {}
    }
    const calls = this.#watched.get(signal) ?? this.#listen(signal)
    calls.add(onAbort)
    return () => calls.delete(onAbort)
  }

  #listen(signal: AbortSignal): Set<() => void> {
    const calls = new Set<() => void>()
    this.#watched.set(signal, calls)
    const callAll = () => {
      for (const call of calls) call()
    }
    signal.addEventListener('abort', callAll, { once: true })
    return calls
  }
}
