import { type Call, onAbort } from '../../../base/core/call.ts'
import type { Clock } from '../../../base/core/process/clock.ts'
import type { Exchange } from '../transport/exchange.ts'
import type { Server } from './server.ts'

/** Aborts samples on an SGLang server. */
export interface SglangAborts {
  /** Makes the server hand back early what it has when the signal aborts; the returned function ends that. */
  watch(exchange: Exchange<unknown>, rids: readonly string[], call: Call): () => void
  /** Stops a sample whose answer nobody awaits. */
  abort(rid: string): void
  /** Waits for what is under way. */
  settle(): Promise<void>
}

/** What aborting needs. */
export interface SglangAbortOptions {
  /** Seconds that an aborted sample may take to hand back its tokens. */
  readonly graceSeconds: number
  readonly clock: Clock
}

/** Opens the way to `/abort_request`. Ids are of one length, since the server matches prefixes. */
export function makeSglangAborts(server: Server, options: SglangAbortOptions): SglangAborts {
  const { graceSeconds, clock } = options
  const pending = new Set<Promise<unknown>>()

  async function post(rid: string): Promise<void> {
    const body = JSON.stringify({ rid })
    const deadlineSeconds = Math.max(1, graceSeconds)
    const exchange = server.start({ path: '/abort_request', body, deadlineSeconds })
    // A server that cannot abort still answers the sample, or runs into its grace.
    await exchange.answer.catch(() => undefined)
  }

  function follow(work: Promise<unknown>): void {
    const entry = work.finally(() => pending.delete(entry))
    pending.add(entry)
  }

  /** An id that the server does not know yet is ignored by it, so the request is repeated. */
  async function insist(
    rids: readonly string[],
    exchange: Exchange<unknown>,
    reason: unknown,
  ): Promise<void> {
    const over = new AbortController()
    const stop = (): void => over.abort()
    exchange.answer.then(stop, stop)
    const end = clock.now() + graceSeconds * 1000
    while (!over.signal.aborted && clock.now() < end) {
      await Promise.all(rids.map(post))
      const rest = Math.max(0, Math.min(1000, end - clock.now()))
      await clock.sleep(rest, over.signal).catch(() => undefined)
    }
    exchange.cancel(reason)
  }

  return {
    watch: (exchange, rids, { signal }) =>
      onAbort(signal, () => follow(insist(rids, exchange, signal.reason))),
    abort: rid => follow(post(rid)),
    async settle() {
      await Promise.allSettled(pending)
    },
  }
}
