import { aroundPolicy } from '../../base/core/around.ts'
import type { Call } from '../../base/core/call.ts'
import type { makeLane } from '../../base/core/lane.ts'
import type { Policy } from '../../base/core/policy.ts'
import type { Instrument } from '../../engine/rollout/attempt.ts'
import type { Listen } from '../watch/events.ts'

/** How the number of requests at one time follows what the server can take. */
export interface AdaptiveOptions {
  /** The lane whose limit is changed; its first limit is the maximum. */
  readonly lane: ReturnType<typeof makeLane>
  readonly listen?: Listen | undefined
  /** Requests at one time to begin with. @default 32 */
  readonly start?: number
  /** Seconds on a clock that never runs backwards. */
  readonly clock: () => number
}

/** Seconds between two looks at the server's cache; above the first share nothing is added, above the second less is asked. */
const caching = { every: 1, full: 0.85, overfull: 0.95 }

/** Adjusts the concurrency of a run by its retries, the time of every sample, and how full the server's cache is. */
export interface Adaptive {
  readonly instrument: Instrument
  readonly listen: Listen
}

/**
 * More requests as long as they bring more tokens per second and the server's cache has room, fewer as soon as the
 * server says it is busy: additive growth by a tenth, a cut to 70 % at 429 and 503, to 90 % at a full cache, at most
 * once a second.
 */
export function makeAdaptive(options: AdaptiveOptions): Adaptive {
  const { lane, listen, clock } = options
  const most = lane.limit
  let cutAt = Number.NEGATIVE_INFINITY
  let window = { from: clock(), samples: 0, tokens: 0 }
  let best = 0
  let lookedAt = Number.NEGATIVE_INFINITY
  let use = 0

  function move(to: number, reason: string): void {
    const next = Math.max(1, Math.min(most, to))
    const from = lane.limit
    window = { from: clock(), samples: 0, tokens: 0 }
    if (next === from) return
    lane.resize(next)
    listen?.({ kind: 'concurrency-change', from, to: next, reason })
  }

  /** Judges a window, which lasts until every place in the lane has seen a sample. */
  function judgeWindow(): void {
    const seconds = clock() - window.from
    if (window.samples < 2 * lane.limit || seconds <= 0) return
    const rate = window.tokens / seconds
    const isWanted = lane.waiting > 0
    if (rate < best * 0.8) {
      best = rate
      move(Math.floor(lane.limit * 0.9), `${Math.round(rate)} tokens/s, less than with fewer`)
    } else if (isWanted && use < caching.full && rate > best * 1.02) {
      best = rate
      move(lane.limit + Math.max(1, Math.round(lane.limit / 10)), `${Math.round(rate)} tokens/s`)
    } else window = { from: clock(), samples: 0, tokens: 0 }
  }

  /** Asks the server how full its cache is: requests that do not fit push out what others find there. */
  async function look({ pressure }: Policy, call: Call): Promise<void> {
    if (clock() - lookedAt < caching.every) return
    lookedAt = clock()
    use = (await pressure?.(call)) ?? 0
    if (use < caching.overfull) return
    best = 0
    const percent = Math.round(use * 100)
    move(Math.floor(lane.limit * 0.9), `the server’s cache of keys and values is ${percent} % full`)
  }

  lane.resize(Math.min(most, options.start ?? 32))
  return {
    instrument: context => ({
      ...context,
      policy: aroundPolicy(context.policy, {
        async draw({ ask, call }) {
          const samples = await ask()
          void look(context.policy, call).catch(() => undefined)
          window.samples += samples.length
          for (const { usage } of samples) window.tokens += usage.sampled
          judgeWindow()
          return samples
        },
      }),
    }),
    listen(event) {
      if (event.kind !== 'retry' || (event.status !== 429 && event.status !== 503)) return
      if (clock() - cutAt < 1) return
      cutAt = clock()
      best = 0
      move(Math.floor(lane.limit * 0.7), `the server answered ${event.status}`)
    },
  }
}
