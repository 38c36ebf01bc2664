import { setMaxListeners } from 'node:events'
import { aroundOnce, aroundPolicy } from '../../base/core/around.ts'
import { type Call, onAbort } from '../../base/core/call.ts'
import type { Instrument } from '../../engine/rollout/attempt.ts'

/** Whether samples under way are aborted or finished when weights change. */
export type OnUpdate = 'abort' | 'finish'

/** Keeps sampling and changes of the weights apart. */
export interface WeightsGate {
  /** Put around every attempt: its samples wait while weights change. */
  readonly instrument: Instrument
  /** Runs what changes the weights, while nothing is sampled from them. */
  change<T>(work: () => Promise<T>): Promise<T>
}

/**
 * Opens the gate between sampling and learning. With `abort`, samples under way are cut, keep what
 * they have, and go on under the new version; with `finish`, they end under the old one first. A
 * policy that loses an aborted sample always finishes.
 */
export function makeWeightsGate(onUpdate: OnUpdate): WeightsGate {
  let stop = makeStop()
  let running = 0
  let closed: Promise<void> | undefined
  let idle: (() => void) | undefined

  function leave(): void {
    running--
    if (running === 0) idle?.()
  }
  async function through<T>(call: Call, cuts: boolean, ask: (call: Call) => Promise<T>) {
    for (;;) {
      while (closed) await orAborted(closed, call.signal)
      running++
      const { signal } = stop
      try {
        return await ask(cuts ? { signal: stop.join(call.signal) } : call)
      } catch (error) {
        // It was cut before its first token: nothing to keep, so it is sent again.
        if (!signal.aborted || call.signal.aborted || error !== signal.reason) throw error
      } finally {
        leave()
      }
    }
  }
  const gated = aroundOnce(policy => {
    const cuts = onUpdate === 'abort' && policy.capabilities.abort
    return aroundPolicy(policy, {
      draw: ({ call, ask }) => through(call, cuts, ask),
      drawOne: (request, call) => through(call, cuts, within => policy.sample(request, within)),
    })
  })
  return {
    instrument: context => ({ ...context, policy: gated(context.policy) }),
    async change(work) {
      while (closed) await closed
      let open = (): void => {}
      closed = new Promise(resolve => {
        open = resolve
      })
      stop.abort(new Error('the weights change'))
      try {
        while (running > 0) await new Promise<void>(resolve => (idle = resolve))
        return await work()
      } finally {
        stop = makeStop()
        closed = undefined
        open()
      }
    },
  }
}

/** Stops all signals that are joined with it. */
function makeStop() {
  const stop = new AbortController()
  const joined = new WeakMap<AbortSignal, AbortSignal>()
  return {
    signal: stop.signal,
    abort: (reason: Error): void => stop.abort(reason),
    /** A joined signal costs as much as a short sample: all that share one signal share the joined one too. */
    join(signal: AbortSignal): AbortSignal {
      const made = joined.get(signal) ?? AbortSignal.any([signal, stop.signal])
      if (!joined.has(signal)) setMaxListeners(0, made)
      joined.set(signal, made)
      return made
    },
  }
}

function orAborted(waited: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason)
    if (signal.aborted) return leave()
    const stopListening = onAbort(signal, leave)
    void waited.then(() => {
      stopListening()
      resolve()
    })
  })
}
