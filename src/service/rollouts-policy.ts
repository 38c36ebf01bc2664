import { once } from 'node:events'
import { aroundPolicy } from '../core/around.ts'
import type { Policy, Sample } from '../core/policy.ts'
import type { Elsewhere } from '../run/elsewhere.ts'
import { withVersions } from '../run/served/with-versions.ts'

/** Tracks what a trainer announces of the weights: their version, and whether they are being changed. */
export interface WeightsDesk {
  readonly isPaused: boolean
  /** `null` until a trainer announced one. */
  readonly version: number | null
  /** Stops sampling; resolves when everybody who makes attempts elsewhere has confirmed it too. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Announces the new version of the weights. */
  announce(version: number, options?: { readonly interrupt?: boolean }): Promise<void>
  /**
   * A policy that starts no sample while the weights are changed. Where it keeps what an aborted
   * sample had, samples under way are cut and go on under the new weights.
   */
  watch(policy: Policy): Policy
}

/** Opens a desk without any announcement yet; announcements are passed on to `elsewhere`. */
export function openWeightsDesk(elsewhere?: Pick<Elsewhere, 'pause' | 'resume'>): WeightsDesk {
  let version: number | null = null
  let cut = new AbortController()
  let pausing: AbortController | undefined
  const tell = openTelling(elsewhere)

  async function wait(signal: AbortSignal): Promise<void> {
    while (pausing && !signal.aborted) {
      await once(AbortSignal.any([pausing.signal, signal]), 'abort')
    }
    signal.throwIfAborted()
  }

  function interrupt(): void {
    const old = cut
    cut = new AbortController()
    old.abort(new Error('the weights are being changed'))
  }

  return {
    get isPaused() {
      return pausing !== undefined
    },
    get version() {
      return version
    },
    async pause() {
      pausing ??= new AbortController()
      interrupt()
      await tell(to => to.pause())
    },
    async resume() {
      const over = pausing
      pausing = undefined
      over?.abort()
      await tell(to => to.resume(version ?? undefined))
    },
    async announce(next, options = {}) {
      version = next
      if (options.interrupt) interrupt()
      if (pausing) return
      await tell(async to => {
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
            await wait(signal)
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
  }
}

/** Sends announcements elsewhere one after the other. */
function openTelling<To>(to: To | undefined): (say: (to: To) => Promise<void>) => Promise<void> {
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
