import type { Capture } from './contract.ts'
import { answerRoute, type Outlet } from './dialects/answer.ts'
import { eventStream } from './dialects/dialect.ts'
import { ResponseMemory } from './dialects/openai/response-memory.ts'
import { RequestProblem } from './dialects/problem.ts'
import { dialectOf, routeOf } from './dialects/routes.ts'

/** What answers the requests of a client in this process. */
export interface FetchOptions {
  readonly capture: Pick<Capture, 'respond' | 'countTokens'>
  /** Ends with the attempt. */
  readonly signal: AbortSignal
  /** The name that is listed as a model. */
  readonly model: string
}

/**
 * A `fetch` for the official clients of OpenAI, Anthropic and Google: whatever host they are told,
 * what they ask is answered here, in the dialect of its path, and nothing leaves the process.
 */
export function agentFetch({ capture, signal, model }: FetchOptions): typeof fetch {
  const memory = new ResponseMemory()
  let count = 0
  return async (input, init) => {
    const request = new Request(input, init)
    const path = pathOf(request.url)
    const headers = Object.fromEntries(request.headers)
    const route = routeOf(request.method, path, headers)
    if (!route) return notHere(request.method, path, headers)
    const left = new AbortController()
    const stopped = AbortSignal.any([request.signal, signal, left.signal])
    stopped.throwIfAborted()
    const text = await request.text()
    const body: unknown = text === '' ? undefined : readJson(text)
    const exchange = { body, id: `attempt${count++}`, now: 0 }
    const outlet = openOutlet(() => left.abort(new Error('the stream was cancelled')))
    const answered = answerRoute(route, exchange, {
      outlet,
      answerer: {
        model,
        memory,
        respond: (asked, onDelta) =>
          capture.respond(asked, { signal: stopped, ...(onDelta && { onDelta }) }),
        countTokens: asked => capture.countTokens(asked),
      },
    })
    const response = await Promise.race([outlet.response, answered.then(() => outlet.response)])
    // A caller that aborted expects an abort error, not an error response.
    if (!response.ok) stopped.throwIfAborted()
    return response
  }
}

/** The path from the version on, whatever base path a client puts before it. */
function pathOf(url: string): string {
  const { pathname } = new URL(url)
  return /\/v1(?:beta|alpha)?(?:\/.*)?$/.exec(pathname)?.[0] ?? pathname
}

function notHere(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): Response {
  const message = `an agent's fetch answers what models are asked; ${method} ${path} is nothing of that`
  const problem = new RequestProblem('not-found', message)
  const { status, body } = dialectOf(path, headers).problem(problem)
  return Response.json(body, { status })
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/**
 * Takes what a dialect writes; the response resolves with the body, or when a stream begins. A reader
 * that cancels the stream is told of by `onLeave`.
 */
function openOutlet(onLeave: () => void): Outlet & { readonly response: Promise<Response> } {
  let give: (response: Response) => void = () => {}
  let stream: ReadableStreamDefaultController<Uint8Array> | undefined
  const response = new Promise<Response>(resolve => {
    give = resolve
  })
  const encoder = new TextEncoder()
  return {
    response,
    body: (status, body) => give(Response.json(body, { status })),
    begin() {
      const pieces = new ReadableStream<Uint8Array>({
        start(controller) {
          stream = controller
        },
        cancel() {
          stream = undefined
          onLeave()
        },
      })
      give(new Response(pieces, { headers: { 'content-type': eventStream } }))
    },
    send: text => stream?.enqueue(encoder.encode(text)),
    end: () => stream?.close(),
  }
}
