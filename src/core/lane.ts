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

/** Opens a lane; `resize` changes its limit while it runs. */
export function openLane(name: string, limit: number): Lane & { resize(limit: number): void } {
  let running = 0
  let waiting = 0
  let allowed = limit
  let head: Waiter | undefined
  let tail: Waiter | undefined

  function release(): void {
    running--
    admit()
  }

  function admit(): void {
    while (head && running < allowed) {
      const waiter = head
      head = waiter.next
      // One that was promoted would keep all that came after it from being collected young.
      waiter.next = undefined
      if (!head) tail = undefined
      if (waiter.isGone) continue
      waiting--
      running++
      waiter.start()
    }
  }

  function queue({ signal }: Call): Promise<void> {
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
      return waiting
    },
    resize(next) {
      allowed = next
      admit()
    },
    async run(call, work) {
      call.signal.throwIfAborted()
      if (running < allowed && !head) running++
      else await queue(call)
      try {
        return await work()
      } finally {
        release()
      }
    },
  }
}

/** Opens the four lanes of a run. */
export function openLanes(limits: LaneLimits): {
  [Name in keyof Lanes]: ReturnType<typeof openLane>
} {
  return {
    policy: openLane('policy', limits.policy),
    tools: openLane('tools', limits.tools),
    environment: openLane('environment', limits.environment),
    reward: openLane('reward', limits.reward),
  }
}
