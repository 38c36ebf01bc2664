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
  /** How long this thread must have been busy, about as long as starting threads costs. @default 1.5 */
  readonly seconds?: number
  /** Cores that the whole program may use by now: with more, threads would find none free. @default any */
  readonly mostCores?: number
  /** How busy things were since they were last looked at. @default as this process tells */
  readonly measure?: () => Busy
  /** Milliseconds between two looks. @default 250 */
  readonly every?: number
}

/** How busy this process was. */
export interface Busy {
  /** The share of the time in which this thread's event loop was. */
  readonly share: number
  /** Cores that all its threads used together. */
  readonly cores: number
}

/** A thread that waits for a server is idle in between; one busier than this share is the bottleneck. */
const busyShare = 0.9

/** Makes attempts here until this thread has been busy for a while, and in threads from then on. */
export function openWhenBusy(options: WhenBusyOptions): Elsewhere & AsyncDisposable {
  const { open, hint, tell, measure = makeMeasure(), every = 250 } = options
  const { seconds = 1.5, mostCores = Number.POSITIVE_INFINITY } = options
  const looks = (seconds * 1000) / every
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
    for (let resumed: number | undefined; resumed !== version; ) {
      resumed = version
      if (!isPaused) await crew.resume(resumed)
    }
    isOpen = true
  }
  function look(): void {
    const { share, cores } = measure()
    busy = share >= busyShare && cores <= mostCores ? busy + 1 : 0
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

function makeMeasure(): () => Busy {
  let loop = performance.eventLoopUtilization()
  let used = process.cpuUsage()
  let at = performance.now()
  return () => {
    const now = { loop: performance.eventLoopUtilization(), at: performance.now() }
    const { user, system } = process.cpuUsage(used)
    const { utilization: share } = performance.eventLoopUtilization(now.loop, loop)
    const cores = (user + system) / 1000 / (now.at - at)
    used = process.cpuUsage()
    ;({ loop, at } = now)
    return { share, cores }
  }
}
