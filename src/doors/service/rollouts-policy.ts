import { aroundPolicy } from '../../base/core/around.ts'
import { describeCause } from '../../base/core/failure.ts'
import type { Policy, Sample } from '../../base/core/policy.ts'
import type { Elsewhere } from '../../run/run/elsewhere.ts'
import { withVersions } from '../../run/run/served/with-versions.ts'
import { openLeasedPause } from './leased-pause.ts'

/** Tracks what a trainer announces of the weights: their version, and whether they are being changed. */
export interface WeightsDesk extends Disposable {
  /** How many seconds a pause lasts unless it is asked for again; `null` if sampling goes on. */
  readonly pausedFor: number | null
  /** `null` until a trainer announced one. */
  readonly version: number | null
  /**
   * Stops sampling for so many seconds at most, from now on; resolves when everybody who makes attempts
   * elsewhere has confirmed it too.
   */
  pause(seconds: number): Promise<void>
  resume(): Promise<void>
  /** Announces the new version of the weights. */
  announce(version: number, options?: { readonly interrupt?: boolean }): Promise<void>
  /**
   * A policy that starts no sample while the weights are changed. If it keeps what an aborted
   * sample had, samples under way are cut and go on under the new weights.
   */
  watch(policy: Policy): Policy
}

/** What a desk is opened with. */
export interface WeightsDeskOptions {
  /** Where announcements are passed on to. */
  readonly elsewhere?: Pick<Elsewhere, 'pause' | 'resume'>
  /** Tells the operator what the trainer did. */
  tell(line: string): void
}

/** Opens a desk without any announcement yet. */
export function openWeightsDesk({ elsewhere, tell }: WeightsDeskOptions): WeightsDesk {
  let version: number | null = null
  let cut = new AbortController()
  const pass = makeTelling(elsewhere)
  const goOn = (): Promise<void> => pass(to => to.resume(version ?? undefined))
  const pausing = openLeasedPause(seconds => {
    tell(
      `paused sampling and neither resumed it nor paused it again within ${seconds} s: it goes on`,
    )
    goOn().catch((cause: unknown) =>
      tell(`is not heard elsewhere, where sampling stays paused: ${describeCause(cause)}`),
    )
  })

  function interrupt(): void {
    const old = cut
    cut = new AbortController()
    old.abort(new Error('the weights are being changed'))
  }

  return {
    get pausedFor() {
      return pausing.seconds
    },
    get version() {
      return version
    },
    async pause(seconds) {
      pausing.begin(seconds)
      interrupt()
      await pass(to => to.pause())
    },
    async resume() {
      pausing.end()
      await goOn()
    },
    async announce(next, options = {}) {
      version = next
      if (options.interrupt) interrupt()
      if (pausing.seconds !== null) return
      await pass(async to => {
        if (options.interrupt) await to.pause()
        await to.resume(next)
      })
    },
    watch(policy) {
      // A server that does not report versions may have changed weights at any token of the sample.
      const labelled = (sample: Sample, began: number | null): Sample =>
        withVersions(policy, sample, { began, ended: version })
      return aroundPolicy(policy, {
        async draw({ call: { signal }, ask }) {
          for (;;) {
            await pausing.over(signal)
            const mine = cut
            const began = version
            const isCut = (): boolean => mine.signal.aborted && !signal.aborted
            try {
              const both = policy.capabilities.abort
                ? AbortSignal.any([signal, mine.signal])
                : signal
              const samples = await ask({ signal: both })
              if (isCut() && samples.every(isEmpty)) continue
              return samples.map(sample => labelled(sample, began))
            } catch (error) {
              // Cut before its first token: nothing is lost by asking again.
              if (!isCut()) throw error
            }
          }
        },
      })
    },
    [Symbol.dispose]: () => pausing[Symbol.dispose](),
  }
}

/** Sends announcements elsewhere one after the other. */
function makeTelling<To>(to: To | undefined): (say: (to: To) => Promise<void>) => Promise<void> {
  let lastSaid: Promise<void> = Promise.resolve()
  return async say => {
    if (to === undefined) return
    const saying = lastSaid.then(() => say(to))
    lastSaid = saying.catch(() => undefined)
    await saying
  }
}

function isEmpty(sample: Sample): boolean {
  return (
    sample.kind === 'tokens' && sample.finish.kind === 'abort' && sample.segment.ids.length === 0
  )
}
