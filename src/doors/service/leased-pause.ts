import { once } from 'node:events'

/** A pause that ends by itself unless it is begun again in time: who began it may be gone. */
export interface LeasedPause extends Disposable {
  /** How many seconds it lasts from when it was last begun; `null` while there is none. */
  readonly seconds: number | null
  begin(seconds: number): void
  end(): void
  /** Resolves when there is none. */
  over(signal: AbortSignal): Promise<void>
}

/** Opens it; `onExpired` is called when its time is over. */
export function openLeasedPause(onExpired: (seconds: number) => void): LeasedPause {
  let running: { readonly over: AbortController; readonly seconds: number } | undefined
  let timer: NodeJS.Timeout | undefined

  function end(): void {
    clearTimeout(timer)
    running?.over.abort()
    running = undefined
  }

  function expire(seconds: number): void {
    end()
    onExpired(seconds)
  }

  return {
    get seconds() {
      return running?.seconds ?? null
    },
    begin(seconds) {
      clearTimeout(timer)
      timer = setTimeout(expire, seconds * 1000, seconds).unref()
      running = { over: running?.over ?? new AbortController(), seconds }
    },
    end,
    async over(signal) {
      while (running && !signal.aborted) {
        await once(AbortSignal.any([running.over.signal, signal]), 'abort')
      }
      signal.throwIfAborted()
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  }
}
