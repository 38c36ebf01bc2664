import { type Call, onAbort } from './call.ts'

/** A bounded place: at most `limit` pieces of work run in it at one time, the rest wait in order. */
export interface Lane {
  readonly name: string
  readonly limit: number
  readonly running: number
  readonly waiting: number
  run<T>(call: Call, work: () => Promise<T>): Promise<T>
}

/** The lanes of a run. Nothing holds a place in one lane while it waits for another, so they cannot deadlock. */
export interface Lanes {
  readonly policy: Lane
  readonly tools: Lane
  readonly environment: Lane
  readonly reward: Lane
}

/** How many pieces of work each lane lets run at one time. */
export interface LaneLimits {
  readonly policy: number
  readonly tools: number
  readonly environment: number
  readonly reward: number
}

interface Waiter {
  readonly start: () => void
  next: Waiter | undefined
  isGone: boolean
}

/** Those that wait for a place, in order. */
function makeQueue() {
  let head: Waiter | undefined
  let tail: Waiter | undefined
  let waiting = 0
  return {
    get length() {
      return waiting
    },
    /** Waits to be started; leaves when the signal aborts. */
    wait({ signal }: Call): Promise<void> {
      return new Promise((resolve, reject) => {
        const leave = (): void => {
          waiter.isGone = true
          waiting--
          reject(signal.reason)
        }
        const waiter: Waiter = {
          start: () => {
            stopListening()
            resolve()
          },
          next: undefined,
          isGone: false,
        }
        const stopListening = onAbort(signal, leave)
        if (tail) tail.next = waiter
        else head = waiter
        tail = waiter
        waiting++
      })
    },
    /** Starts the first that has not left; there must be one. */
    startFirst(): void {
      let waiter: Waiter
      do {
        waiter = head!
        head = waiter.next
        // One that was promoted would keep all that came after it from being collected young.
        waiter.next = undefined
      } while (waiter.isGone)
      if (!head) tail = undefined
      waiting--
      waiter.start()
    },
  }
}

/** Opens a lane; `resize` changes its limit while it runs. */
export function makeLane(name: string, limit: number): Lane & { resize(limit: number): void } {
  const queue = makeQueue()
  let running = 0
  let allowed = limit

  function admit(): void {
    while (queue.length > 0 && running < allowed) {
      running++
      queue.startFirst()
    }
  }
  function release(): void {
    running--
    admit()
  }
  // Shared by all that runs here: thousands wait at once, and what each of them holds is copied by the collector.
  const pass = <T>(result: T): T => {
    release()
    return result
  }
  const fail = (cause: unknown): never => {
    release()
    throw cause
  }
  /** Runs work that has its place. */
  function start<T>(work: () => Promise<T>): Promise<T> {
    try {
      return work().then(pass, fail)
    } catch (cause) {
      return Promise.reject(cause).catch(fail)
    }
  }

  return {
    name,
    get limit() {
      return allowed
    },
    get running() {
      return running
    },
    get waiting() {
      return queue.length
    },
    resize(next) {
      allowed = next
      admit()
    },
    run(call, work) {
      if (call.signal.aborted) return Promise.reject(call.signal.reason)
      if (running >= allowed || queue.length > 0) return queue.wait(call).then(() => start(work))
      running++
      return start(work)
    },
  }
}

/** Opens the four lanes of a run. */
export function makeLanes(limits: LaneLimits): {
  [Name in keyof Lanes]: ReturnType<typeof makeLane>
} {
  return {
    policy: makeLane('policy', limits.policy),
    tools: makeLane('tools', limits.tools),
    environment: makeLane('environment', limits.environment),
    reward: makeLane('reward', limits.reward),
  }
}
