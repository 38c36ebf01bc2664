import type { AssistantMessage, Message, ToolDefinition } from '@espalier/text'
import type { Call } from './call.ts'
import type { NonEmpty } from './ids.ts'
import type { PromptImages } from './image.ts'
import type { LogprobBasis, SampledSegment, VersionRange } from './segment.ts'
import type { WeightSync } from './trainer.ts'

/** How tokens are drawn. Every request states all of it, so that a server's defaults never apply. */
export interface Sampling {
  /** @default 1 */
  readonly temperature: number
  /** @default 1 */
  readonly topP: number
  /** 0 means all tokens. @default 0 */
  readonly topK: number
  /** @default 0 */
  readonly minP: number
}

/** Sampling from the policy's own distribution, unchanged. */
export const plainSampling: Sampling = { temperature: 1, topP: 1, topK: 0, minP: 0 }

/** What a policy continues: the path's ids and, for servers that only chat, the messages behind them. */
export interface Prompt {
  readonly ids: Int32Array
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  /** The images among its tokens, if it shows any. */
  readonly images?: PromptImages
  /**
   * CRC-32 of the ids, if the path keeps it up to date: computing it anew in every turn is quadratic. The ids
   * of such a path are never overwritten.
   */
  digest?(): number
}

/** Which sample this is, for records and seeds: never a position in a stream. */
export interface SampleKey {
  readonly task: string
  readonly member: number
  /** '' on the first path of a tree; every fork adds to it. */
  readonly branch: string
  readonly turn: number
  /** Set if an attempt may be made several times: counters of samples begin anew with each making. */
  readonly making?: string
}

/** One request to continue a prompt. */
export interface SampleRequest {
  readonly prompt: Prompt
  readonly maxTokens: number
  readonly sampling: Sampling
  /** Ids that end the turn. */
  readonly stopIds: readonly number[]
  /** Texts that end the turn. */
  readonly stopStrings: readonly string[]
  /** A 31-bit number; a function of the run's seed and the key. */
  readonly seed: number
  readonly key: SampleKey
  /** Who asks, if an attempt has several seats. */
  readonly seat?: string
  /** Requests of one tree share a session, so that a server can keep its prefix cache warm. */
  readonly session: string
  /** From which token of the prompt on experts are wanted, if the policy reports them. @default 0 */
  readonly expertsFrom?: number
  /** How many candidates per token to report. @default 0 */
  readonly topLogprobs?: number
  /** What the sample has to be, if the policy can be held to a form. */
  readonly form?: Form
  /** Called with the tokens as they come, if the policy streams; a returned name ends the sample as that guard's. */
  readonly watch?: Watch
}

/** A JSON schema, as far as it is looked at here. */
export interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | JsonSchema
  readonly items?: JsonSchema
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
  readonly $ref?: string
  readonly [keyword: string]: unknown
}

/** A JSON value with the text around it, such as that of a call. */
export interface FormText {
  readonly before: string
  readonly schema: JsonSchema
  readonly after: string
  /** How the value is written: as JSON, or as the keyword arguments of a call in Python. @default 'json' */
  readonly writes?: 'json' | 'keywords'
}

/** What a sample has to be: one of these texts. */
export interface Form {
  readonly oneOf: NonEmpty<FormText>
  /** What of it was sampled before, if this sample goes on. */
  readonly begun?: string
}

/** Watches a sample while it grows; returns the name of the guard that wants it stopped, or nothing. */
export type Watch = (soFar: { readonly ids: Int32Array }) => string | undefined

/**
 * Why one sample stopped: at a stop token or string, at its token limit, because its signal
 * aborted it, or because a guard did. What was sampled so far is kept in every case.
 */
export type Finish =
  | { readonly kind: 'stop' }
  | { readonly kind: 'length' }
  | { readonly kind: 'abort' }
  | { readonly kind: 'guard'; readonly guard: string }

/** What a sample cost. */
export interface SampleUsage {
  readonly prompt: number
  readonly sampled: number
  /** Prompt tokens the server had in its prefix cache, if it tells. */
  readonly cached?: number
  /** Seconds from the first byte sent to the answer. */
  readonly seconds: number
  /** The server that answered, if there are several. */
  readonly server?: string
  /** The server's own name for its weights, if it is not the version's number. */
  readonly weights?: string
}

/** A sample with its exact tokens. */
export interface TokenSample {
  readonly kind: 'tokens'
  readonly segment: SampledSegment
  readonly finish: Finish
  readonly usage: SampleUsage
}

/** A sample from a server that gives no token ids: it has to be encoded, and is marked so. */
export interface TextSample {
  readonly kind: 'text'
  readonly message: AssistantMessage
  readonly version: VersionRange
  readonly finish: Finish
  readonly usage: SampleUsage
}

/** What one request gave. */
export type Sample = TokenSample | TextSample

/** Log-probabilities of given tokens: `logprobs[i]` is of `ids[from + i]`. */
export interface Scores {
  readonly logprobs: Float32Array
  readonly basis: LogprobBasis
  readonly version: VersionRange
}

/** What a policy can do; whoever needs more is refused at the start. */
export interface PolicyCapabilities {
  /** Gives the exact ids it sampled. */
  readonly ids: boolean
  /** Gives a log-probability for each of them. */
  readonly logprobs: boolean
  readonly basis: LogprobBasis
  /** The most candidates per token it can report. */
  readonly topLogprobs: number
  readonly entropies: boolean
  /** Tells which experts served each token. @default false */
  readonly experts?: boolean
  /** Which forms it can be held to: JSON with text around it, from the beginning on, or any. @default none */
  readonly forms?: 'json' | 'any'
  /** Is shown images with its tokens. @default false */
  readonly images?: boolean
  readonly score: boolean
  /** Draws several continuations of one prompt in one request. */
  readonly several: boolean
  /** Keeps what was sampled when a sample is aborted. */
  readonly abort: boolean
  readonly seed: boolean
  /** Tells the version of its weights. */
  readonly version: boolean
  /** Shows tokens while it samples, so that guards can act. */
  readonly stream: boolean
}

/** What a policy can do that gives ids and their log-probabilities and no more; others say what is different. */
export const plainCapabilities: PolicyCapabilities = {
  ids: true,
  logprobs: true,
  basis: 'tempered',
  topLogprobs: 0,
  entropies: false,
  score: false,
  several: false,
  abort: false,
  seed: false,
  version: false,
  stream: false,
}

/** What a policy's server says of itself. */
export interface PolicyDescription {
  /** The model it serves: a path or a Hugging Face id. */
  readonly model?: string
  /** The most tokens a prompt and its answer may have together. */
  readonly context?: number
  /** What it says its log-probabilities are of, at other temperatures than 1. */
  readonly logprobs?: 'raw' | 'processed'
}

/**
 * Thrown by a policy whose context a prompt, or a prompt with the answer that was asked for, does not fit: the attempt
 * is then truncated by `context`. Anything else that a policy throws is its failure.
 */
export class PromptTooLong extends Error {
  override name = 'PromptTooLong'
}

/**
 * The weights of a policy that lie in this process. What anyone wants to know of them is asked here: a policy's
 * name says nothing. Every size and kind of model that runs inside answers for itself.
 */
export interface InsideWeights {
  /** The most tokens that a prompt and its answer may have together. */
  readonly context: number
  /** What computes, recorded with a run: numbers repeat to the last bit only on the same. */
  readonly kernel: string
  /** How far a log-probability that is computed again may be off. */
  readonly tolerance: number
  /** Computes on several cores by itself, so that copies on one core each are slower. */
  readonly ownThreads: boolean
  /** What changes while it learns, as bytes for `take` of its copy in another thread or process. */
  pack(): Promise<Uint8Array>
  take(packed: Uint8Array): Promise<void>
  /** Takes over the weights of a checkpoint of its own training. */
  load(checkpoint: string): Promise<void>
  /** Opens such a checkpoint as a policy beside this one. */
  reopen(checkpoint: string): Promise<Policy>
  /** A policy of its own with the weights of now, which nothing changes. */
  copy(): Promise<Policy>
}

/** Tokens of prompts since a server was started, by its own count, whoever asked. */
export interface PrefixCache {
  readonly asked: number
  readonly found: number
}

/** Anything that continues a token sequence. */
export interface Policy extends AsyncDisposable {
  readonly name: string
  readonly capabilities: PolicyCapabilities
  sample(request: SampleRequest, call: Call): Promise<Sample>
  /** Several independent continuations of one prompt; `seeds[i]` is the i-th one's. */
  sampleSeveral?(
    request: SampleRequest,
    seeds: readonly number[],
    call: Call,
  ): Promise<readonly Sample[]>
  score?(ids: Int32Array, from: number, options: ScoreOptions, call: Call): Promise<Scores>
  describe?(call: Call): Promise<PolicyDescription>
  /** Where its server can be given other weights. */
  readonly weights?: WeightSync
  /** Its weights, if they lie in this process. */
  readonly inside?: InsideWeights
  /** The policies behind one that balances over several. */
  readonly members?: readonly Policy[]
  /** How much of all prompts the server found in its cache, by its own count; undefined if it does not tell. */
  prefixCache?(call: Call): Promise<PrefixCache | undefined>
  /** How full its server's cache of keys and values is, from 0 to 1; undefined if it does not tell. */
  pressure?(call: Call): Promise<number | undefined>
  /** Sets which distribution the server's log-probabilities were measured to be of; later samples carry it. */
  takeLogprobs?(found: 'raw' | 'processed'): void
}

/** What scoring needs to know besides the tokens. */
export interface ScoreOptions {
  /** The temperature the log-probabilities should be of, if the policy can choose. */
  readonly temperature: number
  readonly session?: string
  /** The images among the tokens. */
  readonly images?: PromptImages
}
