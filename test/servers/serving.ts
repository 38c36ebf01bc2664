import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Counter } from '../counter.ts'
import type { Foreign } from '../foreign.ts'

/** Ways in which a server can misbehave. */
export const faults = [
  'slow',
  'reset',
  'truncated',
  'lengths',
  'nan',
  'null',
  'too-long',
  'busy',
  'unavailable',
  'html',
  'refused',
  'hang',
] as const

/** A way in which a server can misbehave. */
export type Fault = (typeof faults)[number]

/** A request as the server saw it. */
export interface Seen {
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Foreign
}

/** A request to the fake model of a server. */
export interface Asked {
  readonly prompt: readonly number[]
  readonly maxTokens: number
  /** How many generations were asked for before. */
  readonly index: number
  readonly seed: number | undefined
}

/** The fake model's answer. */
export interface Answer {
  readonly ids: readonly number[]
  readonly logprobs: readonly number[]
  readonly finish: 'stop' | 'length'
  /** For protocols that speak in text. */
  readonly text?: string
}

/** A generation that stops in the middle until it is aborted. */
export interface Hold {
  /** Tokens that it samples before. */
  readonly after: number
  /** Called when they are sampled. */
  readonly onReached: () => void
}

/** How a server behaves. */
export interface ServingOptions {
  /** @default any free one */
  readonly port?: number
  readonly answer?: (asked: Asked) => Answer
  /** The fault of the n-th generation, which asks for this. */
  readonly fault?: (index: number, body: Foreign) => Fault | undefined
  /** Whether the n-th generation stops in the middle. */
  readonly hold?: (index: number) => Hold | undefined
  /** Milliseconds before anything is answered. @default 0 */
  readonly latency?: number
  /** Milliseconds per sampled token. @default 0 */
  readonly pace?: number
  /** Tokens of an answer where `answer` is not given. @default 64 */
  readonly tokens?: number
  /** Keeps what was seen. @default true */
  readonly remember?: boolean
  /** Names the weights; it is asked at every answer. */
  readonly version?: () => string
}

/** A server that runs. */
export interface Serving extends AsyncDisposable {
  readonly url: string
  readonly seen: readonly Seen[]
  /** Resolves when so many requests have come. */
  reached(requests: number): Promise<void>
  close(): Promise<void>
}

/** A request being answered. */
export interface Turn {
  readonly path: string
  readonly body: Foreign
  readonly response: ServerResponse
  readonly fault: Fault | undefined
  readonly hold: Hold | undefined
  readonly index: number
  json(value: unknown): void
}

/** Answers one path. Paths in `generations` are counted and may be given faults. */
export interface Routes {
  readonly generations: Readonly<Record<string, (turn: Turn) => void>>
  readonly others: Readonly<Record<string, (turn: Turn) => void>>
  /** What this protocol says to a prompt that is too long. */
  readonly tooLong: unknown
}

/** Opens a server that speaks the given routes over real HTTP. */
export async function openServing(options: ServingOptions, routes: Routes): Promise<Serving> {
  const seen: Seen[] = []
  const requests = new Counter()
  let count = 0
  const server = createServer((request, response) => {
    receive(request)
      .then(body => {
        requests.raise()
        const path = (request.url ?? '').split('?')[0]!
        if (options.remember !== false) seen.push({ path, headers: request.headers, body })
        const generate = routes.generations[path]
        const index = generate ? count++ : -1
        const fault = generate ? options.fault?.(index, body) : undefined
        const turn: Turn = {
          path,
          body,
          response,
          fault,
          hold: generate ? options.hold?.(index) : undefined,
          index,
          json: v => json(response, v, fault),
        }
        const route = generate ?? routes.others[path]
        if (!route) status(response, 404, { detail: 'Not Found' })
        else if (!misbehave(turn, routes)) later(options.latency ?? 0, () => route(turn))
      })
      .catch(() => response.destroy())
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>(resolve => server.listen(options.port ?? 0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  const reached = (wanted: number): Promise<void> => requests.reached(wanted)
  return { url, seen, reached, close, [Symbol.asyncDispose]: close }
}

async function receive(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString('utf8'))
}

function later(milliseconds: number, work: () => void): void {
  if (milliseconds === 0) work()
  else setTimeout(work, milliseconds)
}

/** Answers with a fault that does not depend on the protocol; returns whether it did. */
function misbehave({ fault, response }: Turn, { tooLong }: Routes): boolean {
  switch (fault) {
    case 'too-long':
      status(response, 400, tooLong)
      return true
    case 'busy':
      response.setHeader('retry-after', '0.02')
      status(response, 429, { error: { message: 'too many requests' } })
      return true
    case 'unavailable':
      status(response, 503, { error: { message: 'loading the model' } })
      return true
    case 'html':
      response.statusCode = 502
      response.setHeader('content-type', 'text/html')
      response.end(`<html><body><h1>502 Bad Gateway</h1>${'<hr>'.repeat(1000)}</body></html>`)
      return true
    case 'refused':
      response.socket?.destroy()
      return true
    case 'hang':
      return true
    default:
      return false
  }
}

function status(response: ServerResponse, code: number, value: unknown): void {
  response.statusCode = code
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(value))
}

/** Answers JSON; a broken number is written as Python's `json` would. */
function json(response: ServerResponse, value: unknown, fault: Fault | undefined): void {
  const text = JSON.stringify(value).replaceAll('"<NaN>"', 'NaN')
  const body = Buffer.from(fault === 'truncated' ? text.slice(0, text.length / 2) : text)
  response.setHeader('content-type', 'application/json')
  response.setHeader('content-length', body.length)
  if (fault === 'reset') {
    response.write(body.subarray(0, body.length / 2))
    setTimeout(() => response.socket?.destroy(), 5)
  } else if (fault === 'slow') setTimeout(() => response.end(body), 60)
  else response.end(body)
}

/** Answers with events, then `[DONE]`. `next` gives the data of the next one, or nothing. */
export function streamEvents(
  turn: Turn,
  pace: number,
  next: () => unknown | undefined,
): { stop(): void } {
  const { response, fault, hold } = turn
  response.setHeader('content-type', 'text/event-stream; charset=utf-8')
  let sent = 0
  let isOver = false
  const end = (): void => {
    isOver = true
    response.end('data: [DONE]\n\n')
  }
  const step = (): void => {
    if (isOver || response.destroyed) return
    if (sent === hold?.after) {
      hold.onReached()
      return
    }
    const data = next()
    if (data === undefined) {
      end()
      return
    }
    const text = JSON.stringify(data).replaceAll('"<NaN>"', 'NaN')
    if (fault === 'truncated' && sent === 2) {
      isOver = true
      response.end(`data: ${text.slice(0, text.length / 2)}\n\n`)
      return
    }
    response.write(`data: ${text}\n\n`)
    if (fault === 'reset' && sent === 2) {
      isOver = true
      setTimeout(() => response.socket?.destroy(), 5)
      return
    }
    sent++
    if (pace === 0 && sent % 8 !== 0) step()
    else setTimeout(step, fault === 'slow' ? 5 : pace)
  }
  step()
  return {
    stop: () => {
      isOver = true
      response.end()
    },
  }
}

/** Answers after so many milliseconds; what is held is not answered in one piece. */
export function paced({ hold }: Turn, milliseconds: number, answer: () => void): void {
  if (hold) hold.onReached()
  else later(milliseconds, answer)
}

/** Numbers that depend on nothing but the prompt, for servers that were given no answers. */
export function inventAnswer(asked: Asked, tokens: number): Answer {
  const last = asked.prompt.at(-1) ?? 0
  const count = Math.min(tokens, asked.maxTokens)
  const ids = Array.from({ length: count }, (_, at) => (last * 31 + at * 7919 + 17) % 151_000)
  const logprobs = ids.map(id => -((id % 997) + 1) / 1024)
  return { ids, logprobs, finish: count < tokens ? 'length' : 'stop', text: ids.join(' ') }
}

/** The answer to a generation, with the faults that lie in its numbers. */
export function answerTo(asked: Asked, fault: Fault | undefined, options: ServingOptions): Answer {
  const answer = options.answer?.(asked) ?? inventAnswer(asked, options.tokens ?? 64)
  const cut = answer.ids.length > asked.maxTokens
  const ids = cut ? answer.ids.slice(0, asked.maxTokens) : answer.ids
  const logprobs: unknown[] = answer.logprobs.slice(0, ids.length)
  if (fault === 'lengths') logprobs.pop()
  if (fault === 'nan') logprobs[1] = '<NaN>'
  if (fault === 'null') logprobs[1] = null
  return {
    ...answer,
    ids,
    logprobs: logprobs as number[],
    finish: cut ? 'length' : answer.finish,
  }
}
