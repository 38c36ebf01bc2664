import type { Listen, Retried, RunEvent } from './events.ts'

/** What a policy tells besides its answers, to whoever wants to hear it. */
export interface Signals {
  emit(event: Retried): void
  /** Hears from now on; gives the way to stop. */
  on(listen: Listen): () => void
}

/** Opens signals; they begin before anybody listens. */
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
