import type { AssistantMessage, Message, ToolDefinition } from '@espalier/text'
import type { Call } from '../../base/core/call.ts'
import type { Failure, RunEndingError } from '../../base/core/failure.ts'
import type { Json } from '../../base/core/ids.ts'
import { describeOutcome, type Outcome } from '../../base/core/outcome.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { Attempt, RolloutContext } from '../rollout/attempt.ts'

/** Which tools a request wants called: any, none, at least one, or this one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly tool: string }

/**
 * What form an answer should have. It is asked for in words, and held to by policies that draw in a form
 * (`formFor`); an answer in another form is reported in `unmet`.
 */
export type ResponseFormat =
  | { readonly kind: 'text' }
  | { readonly kind: 'json'; readonly schema?: Readonly<Record<string, unknown>> }

/** One request of an agent, whatever dialect it was spoken in. */
export interface ChatRequest {
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  /** @default 'auto' */
  readonly toolChoice?: ToolChoice
  /** @default what the limits leave */
  readonly maxTokens?: number
  /** How the agent would draw; the run decides unless the capture was opened to follow requests. */
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  /** Texts that end the answer and are not part of it. */
  readonly stop?: readonly string[]
  /** Goes into the seed of the draw, beside the run's own. */
  readonly seed?: number
  /** How many answers. @default 1 */
  readonly count?: number
  /** How many candidates per token are to be told beside the sampled one. @default 0 */
  readonly topLogprobs?: number
  readonly responseFormat?: ResponseFormat
  /** `false`: at most one call per answer. @default true */
  readonly parallelCalls?: boolean
  /** Names the request. A retry has the same: its answer is then given again, not drawn again. */
  readonly requestId?: string
}

/** Why an answer ended: `aborted` is what was there when its request died. */
export type ChatFinish = 'stop' | 'length' | 'tool-calls' | 'aborted'

/** Something that a request asked for and its answer lacks. */
export interface Unmet {
  readonly what: 'response-format' | 'tool-choice'
  /** What is wrong, in words. */
  readonly problem: string
}

/** A token that could have been sampled, and its log-probability. */
export interface Candidate {
  readonly id: number
  readonly logprob: number
}

/** The answer that an agent gets. */
export interface ChatAnswer {
  readonly id: string
  /**
   * Words, reasoning and calls; malformed calls stay in the words as they were written. White space
   * before words and around reasoning is left out, as it is if pieces are sent.
   */
  readonly message: AssistantMessage
  readonly finish: ChatFinish
  readonly usage: ChatUsage
  /** What the request asked for and the answer lacks; empty if nothing. */
  readonly unmet: readonly Unmet[]
  /** The exact tokens: what the policy saw and what it sampled. */
  readonly tokens: {
    readonly prompt: Int32Array
    readonly sampled: Int32Array
    /** `null` if the policy gives none. */
    readonly logprobs: Float32Array | null
    /** The most probable ones at each place, if the request asked for them. */
    readonly candidates?: readonly (readonly Candidate[])[]
    /** The newest policy version that sampled one of them. */
    readonly version: number
  }
}

/** How many tokens an answer took. */
export interface ChatUsage {
  readonly prompt: number
  readonly sampled: number
  /** Of the prompt's: those that the server had in its cache, if it tells. */
  readonly cached?: number
  /** Of the sampled ones: those up to the end of the reasoning, if there is any. */
  readonly reasoning?: number
}

/**
 * A piece of an answer as it comes; `answer` is its number among several. Pieces of one answer
 * put together are its message: a call comes whole, its arguments as one text.
 */
export type ChatDelta =
  | { readonly kind: 'text'; readonly answer: number; readonly text: string }
  | { readonly kind: 'reasoning'; readonly answer: number; readonly text: string }
  | {
      readonly kind: 'call'
      readonly answer: number
      /** Its number among the answer's calls. */
      readonly index: number
      readonly id: string
      readonly name: string
      readonly arguments: string
    }

/** What a request is given besides what it asks. */
export interface ChatCall extends Call {
  /** Called with each piece as it comes if the policy streams; otherwise with all of them at the end. */
  readonly onDelta?: (delta: ChatDelta) => void
  /** Whose conversation it is, if an attempt has several seats. @default '' */
  readonly seat?: string
  /**
   * The controller of `signal`, if nobody else uses it: the end of the attempt then aborts it
   * directly, which saves a second signal per request.
   */
  readonly controller?: AbortController
}

/** How an attempt ended, as its agent or whoever closes it says. */
export interface CaptureEnding {
  /** @default completed, or what failures, limits and signals made of it */
  readonly outcome?: Outcome
  /** Plain JSON about the final state, for rewards. */
  readonly report?: Json
  /** What the agent answered last, if that is not the last message. */
  readonly answer?: string
  /** What the attempt was worth, if its agent says so itself. */
  readonly reward?: number
  /** How it ended if nothing was sampled in it. @default as if something had been */
  readonly unasked?: Outcome
}

/** One attempt whose requests are captured: every conversation of a seat is a path of its tree. */
export interface Capture {
  /**
   * Answers a request. Throws an `AttemptIsOver` if a limit or the attempt's end refuses it, a
   * `ContextIsFull` if it alone is too long, a `Failure` if something broke, the signal's
   * reason if the request itself was stopped.
   */
  respond(request: ChatRequest, call: ChatCall): Promise<readonly ChatAnswer[]>
  /** How many tokens the policy would be shown. */
  countTokens(request: ChatRequest, call?: Pick<ChatCall, 'seat'>): Promise<number>
  /** What already ended the attempt before it was closed: a limit, a guard, its signal. */
  readonly ended: Outcome | undefined
  /** The last failure at a boundary, if no later request was answered. */
  readonly failure: Failure | undefined
  /** Set if an answer could not be recorded, and no later one was. */
  readonly unrecorded: RunEndingError | undefined
  /** The outcome if the agent gives up now because its last request was too long. */
  readonly refusal: Outcome | undefined
  /** Cuts what is running, refuses what comes later, and gives the tree of every seat. */
  end(ending?: CaptureEnding): Promise<readonly [Tree, ...Tree[]]>
}

/** What capturing needs: a run's rollout context without its worlds. */
export type CaptureContext = Omit<RolloutContext, 'environment' | 'condense'>

/** What one attempt is captured with. */
export interface CaptureOptions {
  readonly context: CaptureContext
  readonly attempt: Attempt
  /** Who may ask. @default [''] */
  readonly seats?: readonly string[]
  /** Whose temperature, top-p and top-k count. @default 'run' */
  readonly samplingFrom?: 'run' | 'request'
}

/** Refuses requests of an attempt that is over; `outcome` is how it ended. */
export class AttemptIsOver extends Error {
  override name = 'AttemptIsOver'
  readonly outcome: Outcome

  constructor(outcome: Outcome) {
    super(`the attempt is over: ${describeOutcome(outcome)}`)
    this.outcome = outcome
  }
}

/** Refuses a request that is too long; the agent may ask again with less. */
export class ContextIsFull extends Error {
  override name = 'ContextIsFull'
  /** Tokens that the policy would have been shown. */
  readonly tokens: number

  constructor(tokens: number, reason: string) {
    super(`the prompt has ${tokens} tokens; ${reason}`)
    this.tokens = tokens
  }
}
