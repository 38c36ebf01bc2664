/** Options of everything asynchronous: the signal that stops it. */
export interface Call {
  readonly signal: AbortSignal
}

const listeners = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls `listener` when the signal aborts; the returned function stops listening. A signal's own
 * list is searched on every addition and removal, so thousands of samples that share one signal
 * share one entry in it.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const listening = listeners.get(signal) ?? startListening(signal)
  // A function of its own: one listener may be given twice.
  const entry = (): void => listener()
  listening.add(entry)
  return () => void listening.delete(entry)
}

function startListening(signal: AbortSignal): Set<() => void> {
  const listening = new Set<() => void>()
  listeners.set(signal, listening)
  signal.addEventListener('abort', () => callAll(listening), { once: true })
  return listening
}

/** Calls back once when a signal aborts, and at once if it has aborted already; gives what stops that. */
export function whenAborted(signal: AbortSignal, listener: () => void): () => void {
  if (!signal.aborted) return onAbort(signal, listener)
  listener()
  return () => {}
}

/** How many listen through `onAbort`, which has one entry in the signal; undefined if it has none. */
export function listenerCount(signal: AbortSignal): number | undefined {
  return listeners.get(signal)?.size
}

/**
 * The result of `work`, unless the signal aborts first: work that ignores its signal is then not
 * waited for, and `left` is called with what it gives later.
 */
export function unlessStopped<T>(
  { signal }: Call,
  work: T | PromiseLike<T>,
  left: (late: T) => void = () => {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLeft = false
    const stopListening = whenAborted(signal, () => {
      isLeft = true
      reject(signal.reason)
    })
    Promise.resolve(work).then(
      given => {
        stopListening()
        if (isLeft) left(given)
        else resolve(given)
      },
      cause => {
        stopListening()
        reject(cause)
      },
    )
  })
}

/** How whoever was asked answers. */
export interface Answering<T> {
  resolve(answer: T): void
  reject(error: unknown): void
}

/**
 * What somebody else answers: `ask` is told how, and gives what takes the question back if the
 * caller is stopped first.
 */
export function askUnlessStopped<T>(
  { signal }: Call,
  ask: (answering: Answering<T>) => () => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    let takeBack = (): void => {}
    const stopListening = onAbort(signal, () => {
      takeBack()
      reject(signal.reason)
    })
    takeBack = ask({
      resolve(answer) {
        stopListening()
        resolve(answer)
      },
      reject(error) {
        stopListening()
        reject(error)
      },
    })
  })
}

/** A signal that aborts with the first of these, until it is released; uses the controller if one is given. */
export function joinSignals(
  signals: readonly AbortSignal[],
  controller = new AbortController(),
): {
  readonly signal: AbortSignal
  release(): void
} {
  const stops = signals.map(signal => whenAborted(signal, () => controller.abort(signal.reason)))
  return {
    signal: controller.signal,
    release() {
      for (const stop of stops) stop()
    },
  }
}

function callAll(listening: Set<() => void>): void {
  for (const entry of listening) {
    listening.delete(entry)
    entry()
  }
}

/** Seconds on a clock that never runs backwards. */
export const steadySeconds = (): number => performance.now() / 1000
