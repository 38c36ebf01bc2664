import type { Listen, Retried, RunEvent } from './events.ts'

/** Events of a policy besides its answers, such as retries. */
export interface Signals {
  emit(event: Retried): void
  /** Listens from now on; the returned function stops it. */
  on(listen: Listen): () => void
}

/** Opens signals, before there are listeners. */
export function openSignals(): Signals {
  const listeners = new Set<Listen>()
  return {
    emit(event: RunEvent) {
      for (const listen of listeners) listen(event)
    },
    on(listen) {
      listeners.add(listen)
      return () => listeners.delete(listen)
    },
  }
}
