import type { ChatAnswer, ChatDelta, ChatRequest } from '../contract.ts'
import type { Asked, Dialect, WriteOptions } from './dialect.ts'
import type { ResponseMemory } from './openai/response-memory.ts'
import { RequestProblem, toProblem } from './problem.ts'
import { type DialectRoute, writeModels } from './routes.ts'

/** What answers requests, whatever dialect they come in. */
export interface Answerer {
  respond(
    request: ChatRequest,
    onDelta?: (delta: ChatDelta) => void,
  ): Promise<readonly ChatAnswer[]>
  countTokens(request: ChatRequest): Promise<number>
  /** The name of the model that is listed. */
  readonly model: string
  readonly memory?: ResponseMemory
  /** The text of one token. */
  readonly decode?: (id: number) => string
}

/** Where an answer goes: one body, or a stream of events. */
export interface Outlet {
  body(status: number, body: unknown): void
  /** Called once before anything is sent of a stream. */
  begin(): void
  send(text: string): void
  end(): void
}

/** What one request is answered with. */
export interface Exchange {
  readonly body: unknown
  /** Names the answer. */
  readonly id: string
  /** Seconds since 1970. */
  readonly now: number
  /** Names the request: every retry of it has the same. */
  readonly requestId?: string
}

/** Answers one request of a dialect. Errors are written in the dialect's shape, never thrown. */
export async function answerRoute(
  route: DialectRoute,
  exchange: Exchange,
  { answerer, outlet }: { readonly answerer: Answerer; readonly outlet: Outlet },
): Promise<void> {
  const { dialect } = route
  try {
    if (route.kind === 'models') outlet.body(200, writeModels(route, answerer.model, exchange.now))
    else if (route.kind === 'count') outlet.body(200, await countTokens(route, exchange, answerer))
    else await answerChat(route, exchange, { answerer, outlet })
  } catch (cause) {
    const { status, body } = dialect.problem(toProblem(cause))
    outlet.body(status, body)
  }
}

async function countTokens(
  { dialect, model }: { readonly dialect: Dialect; readonly model?: string },
  { body }: Exchange,
  answerer: Answerer,
): Promise<unknown> {
  const { counting } = dialect
  if (!counting) throw new RequestProblem('not-found', 'this dialect counts no tokens')
  const { chat } = counting.read(body, model === undefined ? {} : { model })
  return counting.write(await answerer.countTokens(chat))
}

async function answerChat(
  route: DialectRoute & { readonly kind: 'answer' },
  { body, id, now, requestId }: Exchange,
  { answerer, outlet }: { readonly answerer: Answerer; readonly outlet: Outlet },
): Promise<void> {
  const { dialect, model, stream } = route
  const { memory, decode } = answerer
  const read = dialect.read(body, { model, stream, memory })
  const asked: Asked =
    requestId === undefined ? read : { ...read, chat: { ...read.chat, requestId } }
  const writing: WriteOptions = { id, created: now, decode, memory }
  if (asked.stream) await streamChat({ dialect, asked, writing }, answerer, outlet)
  else outlet.body(200, dialect.write(asked, await answerer.respond(asked.chat), writing))
}

/**
 * Streams an answer. The stream begins with the first piece, so that a refusal before it still has its
 * HTTP status; a failure after it is the stream's last event.
 */
async function streamChat(
  what: { readonly dialect: Dialect; readonly asked: Asked; readonly writing: WriteOptions },
  answerer: Answerer,
  outlet: Outlet,
): Promise<void> {
  const { dialect, asked, writing } = what
  const stream = dialect.openStream(asked, writing)
  let hasBegun = false
  const begin = (): void => {
    if (hasBegun) return
    hasBegun = true
    outlet.begin()
    outlet.send(stream.begin())
  }
  try {
    const answers = await answerer.respond(asked.chat, delta => {
      begin()
      outlet.send(stream.delta(delta))
    })
    begin()
    outlet.send(stream.end(answers))
  } catch (cause) {
    if (!hasBegun) throw cause
    outlet.send(stream.fail(toProblem(cause)))
  }
  outlet.end()
}
