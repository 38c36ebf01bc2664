import type { Client, Dispatcher } from 'undici'
import { openClient } from './client.ts'

/** One request as undici dispatches it. */
export type Dispatched = Dispatcher.DispatchOptions

/** A handler that reports when its connection is free again. */
export interface FreeingHandler extends Dispatcher.DispatchHandler {
  /** Called once, when nothing of the request is under way any more. */
  onFree: (() => void) | undefined
}

/** Connections to one server. */
export interface Connections {
  /** Sends a request over a free connection; waits for one when all are taken. */
  dispatch(request: Dispatched, handler: FreeingHandler): void
  close(): Promise<void>
}

/**
 * Keeps up to `limit` connections, the one used last first. undici's own pool opens another one
 * whenever an answer is followed by a request at once, since a socket is free only a moment later,
 * and searches all of them for each request; here the request waits for that moment.
 */
export function openConnections(origin: string, limit: number): Connections {
  const idle: Client[] = []
  const clients = new Set<Client>()
  let waiting: (readonly [Dispatched, FreeingHandler])[] = []
  let next = 0
  let isClosed = false

  function clientFor(): Client | undefined {
    const free = idle.pop()
    if (free || clients.size >= limit) return free
    const client = openClient(origin, { headersTimeout: 0, bodyTimeout: 0, pipelining: 1 })
    clients.add(client)
    return client
  }

  function send(client: Client, [request, handler]: readonly [Dispatched, FreeingHandler]): void {
    // Not assigned as it is made: V8 puts such a function straight into the old generation, where it keeps its
    // request and all that belongs to it until a full collection.
    const onFree = (): void => {
      handler.onFree = undefined
      free(client)
    }
    handler.onFree = onFree
    client.dispatch(request, handler)
  }

  function free(client: Client): void {
    if (isClosed) return
    const first = waiting[next]
    if (!first) {
      idle.push(client)
      return
    }
    next++
    if (next > 1024 && next * 2 > waiting.length) {
      waiting = waiting.slice(next)
      next = 0
    }
    send(client, first)
  }

  return {
    dispatch(request, handler) {
      if (isClosed) throw new Error(`The connections to ${origin} were closed.`)
      const client = clientFor()
      if (client) send(client, [request, handler])
      else waiting.push([request, handler])
    },
    async close() {
      isClosed = true
      const error = new Error(`The connections to ${origin} were closed.`)
      for (const [, handler] of waiting.slice(next)) handler.onResponseError?.(noController, error)
      waiting = []
      await Promise.all([...clients].map(client => client.destroy(error)))
    },
  }
}

/** For requests that never reached a connection. */
const noController: Dispatcher.DispatchController = {
  aborted: false,
  paused: false,
  reason: null,
  abort() {},
  pause() {},
  resume() {},
}
