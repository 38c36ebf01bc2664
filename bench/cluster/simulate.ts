import { random, seedOf } from '../../src/base/math/random.ts'

/** What was measured, in milliseconds of one core. */
export interface Costs {
  /** Of the database, for an attempt's whole way through the tables. */
  readonly attempt: number
  /** Of the database, for a worker's heartbeat and for its look at the runs. */
  readonly beat: number
  readonly look: number
  /** Of the coordinator, for an attempt: placing it, reading its result, its journal. */
  readonly coordinator: number
}

/** A cluster that is simulated. */
export interface Simulated {
  readonly workers: number
  /** Attempts at one time in each worker. */
  readonly concurrency: number
  /** Seconds that an attempt takes; each takes between half and one and a half times as long. */
  readonly seconds: number
  /** Cores of the database. */
  readonly cores: number
  /** Seconds of a worker's lease. */
  readonly lease: number
}

/** The result. */
export interface Outcome {
  readonly perSecond: number
  /** Share of the places in which an attempt was being made, and of time that each was busy. */
  readonly working: number
  readonly database: number
  readonly coordinator: number
  /** Seconds from the end of an attempt until the next one begins in its place: median and 99th percentile. */
  readonly wait: { readonly median: number; readonly p99: number }
}

/** Parts of an attempt's way: before it is made (placed, claimed), and after (written, read, forgotten). */
const before = 0.4

/**
 * Simulates a cluster. Attempts are made in places; each needs the database before and after, and the
 * coordinator once. Both serve whoever came first; heartbeats and looks come on top of it. As many attempts
 * as the places can make twice are placed ahead, and another one for each that the coordinator has read.
 */
export function simulate(costs: Costs, cluster: Simulated, seed = 1): Outcome {
  const { workers, concurrency, seconds, cores, lease } = cluster
  const draw = random(seedOf(seed, 'simulated cluster'))
  // Heartbeats and looks take their share of the database first.
  const presence = (workers * (costs.beat * (3 / lease) + costs.look / 2)) / 1000
  const speed = Math.max(1e-3, 1 - presence / cores)
  const database = openServer(cores)
  const coordinator = openServer(1)
  const places = workers * concurrency
  const events = openQueue()
  const end = Math.max(300, 12 * seconds)
  const counted = end / 2
  const waits: number[] = []
  const reads: number[] = []
  let [made, worked] = [0, 0]
  const served = costs.attempt / 1000 / speed
  for (let place = 0; place < places; place++) events.add((place / places) * seconds)
  for (let now = events.next(); now < end; now = events.next()) {
    // An attempt has just ended in its place: its result is written, and the next one is claimed.
    const written = database.serve(now, served * (1 - before))
    reads.push(coordinator.serve(written, costs.coordinator / 1000))
    const placed = reads[reads.length - 1 - places] ?? 0
    const begun = Math.max(database.serve(written, served * before), placed)
    const length = seconds * (0.5 + draw())
    events.add(begun + length)
    if (now < counted) continue
    made++
    worked += length
    waits.push(begun - now)
  }
  const span = end - counted
  waits.sort((a, b) => a - b)
  const at = (share: number): number => waits[Math.floor(share * (waits.length - 1))] ?? 0
  return {
    perSecond: made / span,
    working: Math.min(1, worked / span / places),
    database: Math.min(1, (made / span) * (costs.attempt / 1000 / cores) + presence / cores),
    coordinator: Math.min(1, ((made / span) * costs.coordinator) / 1000),
    wait: { median: at(0.5), p99: at(0.99) },
  }
}

/** A server with several workers and a first-come, first-served queue. */
function openServer(hands: number) {
  const free = Array.from({ length: hands }, () => 0)
  return {
    /** When a job that arrives now and takes this long is done. */
    serve(now: number, takes: number): number {
      let next = 0
      for (let hand = 1; hand < hands; hand++) if (free[hand]! < free[next]!) next = hand
      const done = Math.max(now, free[next]!) + takes
      free[next] = done
      return done
    },
  }
}

/** Moments, the earliest first. */
function openQueue() {
  const heap: number[] = []
  const swap = (a: number, b: number): void => {
    ;[heap[a], heap[b]] = [heap[b]!, heap[a]!]
  }
  return {
    add(time: number): void {
      heap.push(time)
      for (let at = heap.length - 1; at > 0; ) {
        const parent = (at - 1) >> 1
        if (heap[parent]! <= heap[at]!) break
        swap(parent, at)
        at = parent
      }
    },
    next(): number {
      const first = heap[0] ?? Number.POSITIVE_INFINITY
      const last = heap.pop()
      if (heap.length === 0 || last === undefined) return first
      heap[0] = last
      for (let at = 0; ; ) {
        const left = 2 * at + 1
        const right = left + 1
        let least = at
        if (left < heap.length && heap[left]! < heap[least]!) least = left
        if (right < heap.length && heap[right]! < heap[least]!) least = right
        if (least === at) break
        swap(at, least)
        at = least
      }
      return first
    },
  }
}
