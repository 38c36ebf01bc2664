import type { Call } from '../../../base/core/call.ts'
import { pause } from '../../../base/core/process/timer.ts'
import {
  protobufType,
  type TinkerAnswer,
  TinkerError,
  type TinkerRequest,
  type TinkerTask,
} from './request.ts'

/** How often a plain 400 is blamed on a proxy and retried, and how often a lost request is sent again. */
const mostBadRequests = 3
const mostSubmissions = 3
const longestPauseMs = 30_000

interface Asking {
  send(request: TinkerRequest, call: Call): Promise<TinkerAnswer>
  /** The first pause where connections break, in milliseconds. */
  readonly pauseMs: number
  /** Seconds without a good answer after which to give up. */
  readonly retrySeconds: number
}

/**
 * Asks for a result until it is there, by the table of the published SDK: 408 and 5xx at once again,
 * 429 and broken connections after growing pauses, a plain 400 three times, and 410 means that the
 * request is gone and has to be sent again. When the caller gives up, the server is told.
 */
export async function retrieve(
  asking: Asking,
  task: TinkerTask,
  call: Call,
): Promise<TinkerAnswer> {
  for (let submissions = 1; ; submissions++) {
    const id = await task.submit()
    try {
      return await poll(asking, { task, id }, call)
    } catch (error) {
      if (call.signal.aborted) cancel(asking, id)
      const isGone = error instanceof TinkerError && error.code === 410
      if (!isGone || submissions >= mostSubmissions) throw error
    }
  }
}

async function poll(
  asking: Asking,
  { task, id }: { readonly task: TinkerTask; readonly id: string },
  call: Call,
): Promise<TinkerAnswer> {
  const troubles = makeTroubles(asking)
  for (let iteration = 0; ; iteration++) {
    call.signal.throwIfAborted()
    let milliseconds = Math.min(50, asking.pauseMs)
    try {
      const answer = await asking.send(questionFor(task, id, iteration), call)
      if (answer instanceof Uint8Array) return answer
      if (answer.error !== undefined) throw failed(task.path, answer)
      if (answer.type !== 'try_again') return answer
      troubles.forget()
    } catch (error) {
      call.signal.throwIfAborted()
      const waits = troubles.meet(error)
      if (waits === undefined) throw named(task, error)
      milliseconds = waits
    }
    await pause(milliseconds, call.signal)
  }
}

/** Counts errors; returns after how many milliseconds to ask again, or undefined to give up. */
function makeTroubles({ pauseMs, retrySeconds }: Asking) {
  let broken = 0
  let bad = 0
  let good = performance.now()
  return {
    forget() {
      broken = 0
      good = performance.now()
    },
    meet(error: unknown): number | undefined {
      const way = wayOn(error)
      const isLate = performance.now() - good > retrySeconds * 1000
      if (way === 'stop' || isLate) return undefined
      if (way === 'thrice') return ++bad > mostBadRequests ? undefined : pauseMs
      if (way === 'pause') return Math.min(longestPauseMs, pauseMs * 2 ** Math.min(++broken, 10))
      return Math.min(50, pauseMs)
    },
  }
}

function questionFor({ path, protobuf }: TinkerTask, id: string, iteration: number) {
  return {
    path: 'retrieve_future',
    body: { request_id: id },
    headers: {
      'x-tinker-request-iteration': String(iteration),
      'x-tinker-request-type': path,
      ...(protobuf && { accept: `${protobufType}, application/json` }),
    },
  }
}

type Way = 'again' | 'pause' | 'thrice' | 'stop'

function wayOn(error: unknown): Way {
  if (error instanceof FailedError) return 'stop'
  if (!(error instanceof TinkerError)) return 'pause'
  if (error.code === 408 || error.code >= 500) return 'again'
  if (error.code === 429) return 'pause'
  return error.code === 400 ? 'thrice' : 'stop'
}

/** The server did the work and reported that it failed. */
class FailedError extends TinkerError {}

function failed(path: string, answer: Readonly<Record<string, unknown>>): FailedError {
  const { error } = answer
  return new FailedError(path, 400, typeof error === 'string' ? error : JSON.stringify(error))
}

/** An error with the path of the request that it is about. */
function named({ path }: TinkerTask, error: unknown): unknown {
  if (!(error instanceof TinkerError) || error instanceof FailedError) return error
  const words = error.message.replace(/^retrieve_future answered \d+: /, '')
  return new TinkerError(path, error.code, words)
}

function cancel({ send }: Asking, id: string): void {
  const call = { signal: AbortSignal.timeout(10_000) }
  send({ path: 'cancel_future', body: { request_id: id } }, call).catch(() => {
    // A server that cannot cancel goes on; its result is ignored.
  })
}
