import { performance } from 'node:perf_hooks'
import type { Listen } from '../../watch/events.ts'
import type { Elsewhere } from '../elsewhere.ts'

/** Threads that were opened; some may not be ready. */
interface Opened extends Elsewhere, AsyncDisposable {
  /** Resolves when the first can make attempts. */
  ready(): Promise<void>
}

/** How to open threads that may not be needed. */
export interface WhenBusyOptions {
  open(): Opened
  /** If set, printed instead of opening them. */
  readonly hint: string | undefined
  readonly tell: (line: string) => void
  /** The share of the time that this thread was busy since it was last asked. @default that of its event loop */
  readonly busyShare?: () => number
  /** Milliseconds between two looks. @default 250 */
  readonly every?: number
}

/** A thread that waits for a server is idle in between; one busier than this share is the bottleneck. */
const busyShare = 0.9
/** It must be busy in this many checks in a row, about as long as starting a thread takes. */
const looks = 6

/** Makes attempts here until this thread has been busy for a while, and in threads from then on. */
export function openWhenBusy(options: WhenBusyOptions): Elsewhere & AsyncDisposable {
  const { open, hint, tell, busyShare: measure = openMeasure(), every = 250 } = options
  const listeners = new Map<Listen, () => void>()
  let crew: Opened | undefined
  let opening: Promise<void> | undefined
  let isOpen = false
  let isPaused = false
  let version: number | undefined
  let busy = 0
  let timer: NodeJS.Timeout | undefined

  async function spread(): Promise<void> {
    crew = open()
    for (const listen of listeners.keys()) listeners.set(listen, crew.watch(listen))
    await crew.ready()
    if (isPaused) await crew.pause()
    // Weights may change again while the last ones are loaded.
    for (let taken: number | undefined; taken !== version; ) {
      taken = version
      if (!isPaused) await crew.resume(taken)
    }
    isOpen = true
  }
  function look(): void {
    busy = measure() >= busyShare ? busy + 1 : 0
    if (busy < looks || opening) return
    clearInterval(timer)
    // If no thread can be started, the run stays in this one.
    if (hint !== undefined) tell(hint)
    else opening = spread().catch(error => tell(`threads could not be started: ${error.message}`))
  }
  return {
    get isOpen() {
      return isOpen
    },
    get room() {
      return isOpen ? crew!.room : 0
    },
    watch(listen) {
      listeners.set(listen, crew?.watch(listen) ?? (() => {}))
      // Only while something is rolled.
      timer ??= setInterval(look, every).unref()
      return () => {
        listeners.get(listen)?.()
        listeners.delete(listen)
      }
    },
    make: async (work, call) => await crew!.make(work, call),
    weighs: how => isOpen && (crew!.weighs?.(how) ?? false),
    makeGroup: async (work, call) => await crew!.makeGroup!(work, call),
    taken: tree => crew?.taken(tree),
    async pause() {
      isPaused = true
      await crew?.pause()
    },
    async resume(next) {
      isPaused = false
      version = next ?? version
      await crew?.resume(next)
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await crew?.[Symbol.asyncDispose]()
    },
  }
}

/** The share of the time that the event loop was busy since it was last asked. */
function openMeasure(): () => number {
  let before = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization
  }
}
