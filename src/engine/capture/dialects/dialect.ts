import type { ChatAnswer, ChatDelta, ChatRequest } from '../contract.ts'
import type { ResponseItem, ResponseMemory } from './openai/response-memory.ts'
import type { RequestProblem } from './problem.ts'

/** The dialects that agents speak to a model in. */
export type DialectName = 'openai-chat' | 'openai-responses' | 'anthropic' | 'google'

/** What reading a request needs besides its body. */
export interface ReadOptions {
  /** The model that the path names, if the dialect puts it there. */
  readonly model?: string | undefined
  /** Whether the path asks for a stream, if the dialect says so there. */
  readonly stream?: boolean | undefined
  /** What was answered before, for dialects whose requests refer to it. */
  readonly memory?: ResponseMemory | undefined
}

/** A request as a dialect read it. */
export interface Asked {
  readonly chat: ChatRequest
  /** The model's name as the client wrote it; answers repeat it. */
  readonly model: string
  readonly stream: boolean
  /** The body, for what an answer has to repeat of it. */
  readonly body: Readonly<Record<string, unknown>>
  readonly wants: Wanted
  /** The items it stands for when all references are followed, in OpenAI's Responses. */
  readonly items?: readonly ResponseItem[]
}

/** What a client wants besides the message. */
export interface Wanted {
  readonly logprobs: boolean
  readonly tokenIds: boolean
  /** Whether a stream ends with the token usage. */
  readonly usage: boolean
}

/** What writing an answer needs besides the answer. */
export interface WriteOptions {
  /** Names the answer; the dialect puts its own prefix before it. */
  readonly id: string
  /** Seconds since 1970, for the fields that carry a time. */
  readonly created: number
  /** The text of one token, for log-probabilities. */
  readonly decode?: ((id: number) => string) | undefined
  readonly memory?: ResponseMemory | undefined
}

/** Writes a stream in a dialect's events; each call gives the text to send. */
export interface StreamWriter {
  begin(): string
  /** The next piece of the answer. */
  delta(delta: ChatDelta): string
  /** The whole answers, once all have ended. */
  end(answers: readonly ChatAnswer[]): string
  /** Instead of `end`: what went wrong in mid-stream. */
  fail(problem: RequestProblem): string
}

/** One way to speak to a model over HTTP: pure functions between its bodies and ours. */
export interface Dialect {
  readonly name: DialectName
  /** Reads a body, or throws a `RequestProblem`. */
  read(body: unknown, options: ReadOptions): Asked
  /** The body of an answer that is not streamed; one or several, as was asked. */
  write(asked: Asked, answers: readonly ChatAnswer[], options: WriteOptions): unknown
  openStream(asked: Asked, options: WriteOptions): StreamWriter
  /** How tokens are counted without being answered, if the dialect has that. */
  readonly counting?: {
    read(body: unknown, options: ReadOptions): Asked
    write(tokens: number): unknown
  }
  /** The models that a server has, as the dialect lists them; one alone if it was asked for. @default as OpenAI lists them */
  readonly writeModels?: (name: string, created: number, isOne: boolean) => unknown
  /** Whether streams are a JSON list unless a client asks for events. @default false */
  readonly streamsList?: boolean
  /** A problem in the dialect's own shape. */
  problem(problem: RequestProblem): DialectProblem
}

/** A problem as a dialect writes it. */
export interface DialectProblem {
  readonly status: number
  readonly body: unknown
}

/** The content type of every stream of events. */
export const eventStream = 'text/event-stream; charset=utf-8'
