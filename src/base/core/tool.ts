import type { ContentPart, Message } from '@espalier/text'

/** What Standard Schema (zod, Valibot, ArkType and others) promises; only what is used here. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

/** What validating by a Standard Schema gives. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

/** One thing wrong with a value. */
export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** The output type of a schema; `unknown` for a plain JSON schema. */
export type OutputOf<Schema> =
  Schema extends StandardSchema<infer _, infer Output> ? Output : unknown

/** What a tool gets besides its input; the AI SDK's names. */
export interface ToolExecution {
  readonly toolCallId: string
  readonly messages: readonly Message[]
  readonly abortSignal: AbortSignal
}

/** Bounds of one tool. */
export interface ToolLimits {
  /** Seconds a call may take. @default 30 */
  readonly seconds?: number
  /** Characters of output the policy is shown. @default 20000 */
  readonly characters?: number
  /** Calls at one time over the whole run. @default Infinity */
  readonly concurrency?: number
}

/**
 * A named, typed function that a world offers, in the AI SDK's shape. `inputSchema` is a zod or
 * other Standard Schema, an AI SDK schema, or a plain JSON schema.
 */
export interface Tool<Schema = unknown, Output = unknown> {
  readonly description?: string
  readonly inputSchema: Schema
  execute(input: OutputOf<Schema>, execution: ToolExecution): Output | PromiseLike<Output>
  readonly limits?: ToolLimits
  /**
   * `outside`: it changes or reads something beyond its world; a replay feeds back its recorded
   * answer and never runs it again. @default 'none'
   */
  readonly effects?: 'none' | 'outside'
}

/** Why a call was answered with an error that the policy can learn from. */
export type ToolProblem =
  | 'unknown-tool'
  | 'malformed-call'
  | 'invalid-arguments'
  | 'thrown'
  | 'timeout'
  | 'extra-call'

/** One call as it happened. */
export interface CallRecord {
  readonly turn: number
  readonly id: string
  /** The tool's name as the policy wrote it; '' if a malformed call named none. */
  readonly tool: string
  /** The validated arguments; what the policy wrote if they were not valid. */
  readonly input: unknown
  /** What the policy was shown. */
  readonly output: string
  /** What it said in parts, if it showed images. */
  readonly content?: readonly ContentPart[]
  readonly problem?: ToolProblem
  /** Characters of the output that were cut off. */
  readonly cut?: number
  /** It recalled condensed text: the world never saw this call. */
  readonly isRecall?: true
  readonly seconds: number
}
