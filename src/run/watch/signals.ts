import type { Listen, Retried, RunEvent, ServerBack, Warned } from './events.ts'

/** Events of servers besides their answers, such as retries. */
export interface Signals {
  emit(event: Retried | ServerBack | Warned): void
  /** Listens from now on; the returned function stops it. */
  on(listen: Listen): () => void
}

/** Opens signals, before there are listeners. */
export function makeSignals(): Signals {
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
