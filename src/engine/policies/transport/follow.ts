import { type Call, onAbort } from '../../../base/core/call.ts'
import type { Finish, Watch } from '../../../base/core/policy.ts'
import { readEvents } from './events.ts'
import type { Exchange } from './exchange.ts'

/** A streamed sample to be followed. */
export interface Following {
  readonly where: string
  readonly start: (onEvents: (chunk: Buffer) => void) => Exchange
  /** Takes one event's data; returns whether it brought tokens. */
  readonly take: (data: string) => boolean
  /** A view of the ids so far. */
  readonly ids: () => Int32Array
  readonly watch?: Watch | undefined
}

/** How following ended: the stream was stopped, or the server closed it. */
export interface Followed {
  readonly stopped: Finish | undefined
  /** The body, if the server did not answer with a stream; otherwise empty. */
  readonly body: Buffer
}

/**
 * Follows a stream until it ends, its signal aborts it, or the watch names a guard. Aborted before
 * the first token there is nothing to keep: it rejects with the signal's reason.
 */
export async function follow(following: Following, { signal }: Call): Promise<Followed> {
  const { where, start, take, ids, watch } = following
  let stopped: Finish | undefined

  const exchange = start(
    readEvents(where, data => {
      // After an abort, tokens that had arrived are still taken; after a guard's stop none are.
      if (stopped?.kind === 'guard' || !take(data) || stopped || !watch) return
      const guard = watch({ ids: ids() })
      if (guard !== undefined) stop({ kind: 'guard', guard })
    }),
  )
  function stop(finish: Finish): void {
    stopped = finish
    exchange.cancel(finish)
  }
  const release = onAbort(signal, () => stop({ kind: 'abort' }))
  try {
    return { stopped, body: await exchange.answer }
  } catch (cause) {
    if (!stopped || cause !== stopped) throw cause
    if (stopped.kind === 'abort' && ids().length === 0) throw signal.reason
    return { stopped, body: Buffer.alloc(0) }
  } finally {
    release()
  }
}
