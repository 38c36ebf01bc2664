import type { Call } from '../../../base/core/call.ts'
import { pause } from '../../../base/core/process/timer.ts'
import { retrieve } from './futures.ts'
import {
  fieldsOf,
  requestId,
  sendTo,
  type TinkerAnswer,
  TinkerError,
  type TinkerRequest,
  type TinkerTask,
} from './request.ts'

/**
 * Requests to a server that speaks Tinker's API (paths, shapes and the table of retries of the
 * published SDK, 0.36).
 */
export interface TinkerApi {
  readonly url: string
  /** The first pause between two tries, in milliseconds. */
  readonly pauseMs: number
  /** Sends once; the caller interprets the answer. */
  send(request: TinkerRequest, call: Call): Promise<TinkerAnswer>
  get(path: string, call: Call): Promise<Readonly<Record<string, unknown>>>
  /** Sends, and again while the server is busy or cannot be reached. */
  post(path: string, body: object, call: Call): Promise<Readonly<Record<string, unknown>>>
  /** Sends a long-running request, and asks for its result until it is there. */
  result(path: string, body: object, call: Call): Promise<Readonly<Record<string, unknown>>>
  /** Asks for the result of a task until it is there; its `submit` sends the request again if the server lost it. */
  resultOf(task: TinkerTask, call: Call): Promise<TinkerAnswer>
  /** Sends with retries and returns the id of the result. */
  submit(request: TinkerRequest, call: Call, options?: SubmitOptions): Promise<string>
}

/** What to do if the server is too busy: wait here, or throw and let the caller wait. */
export interface SubmitOptions {
  /** @default 'wait' */
  readonly busy?: 'wait' | 'throw'
  /** Called with the immediate answer, before the result is there. */
  readonly heard?: (answer: Readonly<Record<string, unknown>>) => void
}

/** Where the API is, and who asks. */
export interface TinkerApiOptions {
  readonly key?: string
  /** Seconds for which a request is retried that failed through no fault of its own. @default 300 */
  readonly retrySeconds?: number
  /** The first pause between two tries, in milliseconds; each next one is twice as long. @default 500 */
  readonly pauseMs?: number
}

/** Whether an error means that trying later may help. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof TinkerError)) return true
  return error.code === 408 || error.code === 425 || error.code === 429 || error.code >= 500
}

/** Opens the API at a URL. */
export function openTinkerApi(url: string, options: TinkerApiOptions = {}): TinkerApi {
  const { key, retrySeconds = 300, pauseMs = 500 } = options
  const base = url.replace(/(?<!\/)\/+$/, '')

  const send: TinkerApi['send'] = (asked, call) => sendTo({ base, key }, asked, call)

  async function tried(
    asked: TinkerRequest,
    call: Call,
    { busy = 'wait' }: SubmitOptions = {},
  ): Promise<TinkerAnswer> {
    const until = performance.now() + retrySeconds * 1000
    for (let milliseconds = pauseMs; ; milliseconds = Math.min(10_000, milliseconds * 2)) {
      try {
        return await send(asked, call)
      } catch (error) {
        call.signal.throwIfAborted()
        const isBusy = error instanceof TinkerError && error.code === 429
        if (!isPassing(error) || performance.now() + milliseconds > until) throw error
        if (isBusy && busy === 'throw') throw error
        await pause(milliseconds, call.signal)
      }
    }
  }

  const api: TinkerApi = {
    url: base,
    pauseMs,
    send,
    get: async (path, call) => fieldsOf(path, await tried({ path }, call)),
    post: async (path, body, call) => fieldsOf(path, await tried({ path, body }, call)),
    async result(path, body, call) {
      const task = { path, submit: () => api.submit({ path, body }, call) }
      return fieldsOf(path, await api.resultOf(task, call))
    },
    resultOf: (task, call) => retrieve({ send, pauseMs, retrySeconds }, task, call),
    async submit(asked, call, given) {
      const answer = await tried(asked, call, given)
      given?.heard?.(fieldsOf(asked.path, answer))
      return requestId(asked.path, answer)
    },
  }
  return api
}
