import { z } from 'zod'
import { parseBounded } from '../../../base/core/process/bounded.ts'
import { late } from '../../../engine/environments/late.ts'
import type { InsideProcess } from '../inside/inside.ts'
import { onLines } from '../inside/lines.ts'

/** A request that is refused, with JSON-RPC's number for why. */
export class RefusedCall extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** The other side of a JSON-RPC connection. */
export interface Peer {
  /** Asks it; throws with its words if it refuses, or ends before it answered. */
  ask(method: string, params: object): Promise<unknown>
}

/** What this side does for the other: what is not here is refused. */
export interface Handlers {
  readonly requests: Readonly<Record<string, (params: unknown) => unknown>>
  readonly notifications: Readonly<Record<string, (params: unknown) => void>>
}

const id = () => z.union([z.string(), z.number()])
const message = late(() =>
  z.union([
    z.object({ method: z.string(), id: id().optional(), params: z.unknown().optional() }),
    z.object({
      id: id(),
      error: z.object({ code: z.number(), message: z.string(), data: z.unknown().optional() }),
    }),
    z.object({ id: id(), result: z.unknown().optional() }),
  ]),
)

/** Most requests that are served at one time. */
const mostServed = 128

/** Most characters of its words that an error repeats. */
const mostShown = 1000

interface Waiting {
  resolve(result: unknown): void
  reject(error: Error): void
}

/** Speaks JSON-RPC with a process, a message per line. */
export function makePeer(process: InsideProcess, handlers: Handlers): Peer {
  const waiting = new Map<string | number, Waiting>()
  let asked = 0
  let serving = 0
  let over: Error | undefined
  const end = (error: Error): void => {
    over ??= error
    for (const each of waiting.values()) each.reject(over)
    waiting.clear()
  }
  const say = (told: object): void =>
    process.write(`${JSON.stringify({ jsonrpc: '2.0', ...told })}\n`)
  const answer = (method: string, params: unknown): unknown => {
    const handler = Object.hasOwn(handlers.requests, method) ? handlers.requests[method] : undefined
    if (!handler) throw new RefusedCall(-32601, `there is no method ${method.slice(0, 80)}`)
    if (serving > mostServed) throw new RefusedCall(-32000, `${mostServed} requests wait already`)
    return handler(params)
  }
  const serve = async (of: string | number, method: string, params: unknown): Promise<void> => {
    serving++
    try {
      say({ id: of, result: (await answer(method, params)) ?? {} })
    } catch (cause) {
      const code = cause instanceof RefusedCall ? cause.code : -32603
      say({ id: of, error: { code, message: (cause as Error).message } })
    } finally {
      serving--
    }
  }
  const take = (text: string): void => {
    // Some programs print other lines before they speak.
    const read = message().safeParse(tryJson(text))
    if (!read.success) return
    const told = read.data
    if ('method' in told) {
      if (told.id !== undefined) void serve(told.id, told.method, told.params)
      else if (Object.hasOwn(handlers.notifications, told.method))
        handlers.notifications[told.method]!(told.params)
      return
    }
    const asker = waiting.get(told.id)
    waiting.delete(told.id)
    if ('error' in told) asker?.reject(new RefusedCall(told.error.code, wordsOf(told.error)))
    else asker?.resolve(told.result)
  }
  onLines(process.output, {
    line: take,
    broken: end,
  })
  void process.exited.then(({ code, problem }) =>
    end(new Error(problem ?? `it ended with exit code ${code} before it answered`)),
  )
  return {
    ask(method, params) {
      if (over) return Promise.reject(over)
      const of = asked++
      return new Promise((resolve, reject) => {
        waiting.set(of, { resolve, reject })
        say({ id: of, method, params })
      })
    },
  }
}

function wordsOf({
  message: words,
  data,
}: {
  readonly message: string
  readonly data?: unknown
}): string {
  const more = data === undefined || data === null ? '' : ` (${JSON.stringify(data).slice(0, 300)})`
  return `${words.slice(0, mostShown)}${more}`
}

function tryJson(text: string): unknown {
  try {
    return parseBounded(text)
  } catch (cause) {
    if (cause instanceof SyntaxError) return undefined
    throw cause
  }
}
