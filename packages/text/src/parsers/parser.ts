import type { ToolDefinition } from '../message.ts'
import { type ReasoningFormat, reasoningReadings } from './formats/reasoning-formats.ts'
import { type ToolFormat, toolReadings } from './formats/tool-formats.ts'
import { openOutput, parseOutput, readersOf } from './output.ts'

export { detectFormats } from './detect.ts'
export type { ReasoningFormat } from './formats/reasoning-formats.ts'
export type { ToolFormat } from './formats/tool-formats.ts'

/**
 * A parser turns what a policy sampled into reasoning, content and calls.
 *
 * The same rules hold for every format:
 *
 * 1. Reasoning is split off first. A call within a thinking block is not a call, except in formats
 *    whose calls end or interrupt thinking by their grammar (apertus2509, inkling, kimi_k3). A block
 *    that never closes ends at the first call, if the format has such a rule. The closing tag of
 *    a block that nobody opened is text, unless the prompt opened it (`opensInReasoning`). A later
 *    block is reasoning too; in formats of channels what follows the calls is left as it is.
 * 2. A call counts when its own closing marker has arrived, or, if a format has none, when its
 *    value is complete; the closing marker of the section around it may be missing.
 * 3. A call that is cut off or breaks its grammar is kept as `malformed`: its raw text up to its own
 *    closing marker, the next opening one or the end, and what is wrong with it. It is never
 *    repaired and never completed. What follows it is read as if it had been well-formed.
 * 4. Text before, between and after calls is content, in order. Framing of channels is not text, nor
 *    are end-of-turn tokens at the very end.
 * 5. A marker within a JSON, Python or quoted string is text. In raw parameter values the first
 *    closing tag closes. In text made from token ids, a marker that is a control token of the
 *    vocabulary counts only if it arrived as that token.
 * 6. Calls of unknown tools are calls: the environment answers them.
 * 7. `arguments` is the JSON object the policy wrote, character by character. Missing or null is
 *    `{}`; a string that holds an object is decoded once; anything else is malformed. Raw parameter
 *    values are typed by the tool's schema: a declared string stays the text it is.
 * 8. Streaming gives the same as the whole text, for every chunking, in linear time.
 */
export interface OutputParser {
  /** Parses a whole output. */
  parse(output: OutputText): ParsedOutput
  /** Starts to parse an output that is still being sampled. */
  open(): StreamingParser
}

/**
 * What was sampled: plain text, in which any marker counts, or the pieces that token ids decode to.
 * A control token is one piece with `control`.
 */
export type OutputText = string | readonly TextPiece[]

/** A run of sampled text. */
export interface TextPiece {
  readonly text: string
  /** Whether this is a control token of the vocabulary, not text that looks like one. */
  readonly control: boolean
}

/** A call that the policy made or tried to make. */
export type ParsedCall =
  | {
      readonly kind: 'call'
      readonly name: string
      /** A JSON object as text. */
      readonly arguments: string
      /** The id that the format itself carries, if it carries one. */
      readonly id?: string
    }
  | {
      readonly kind: 'malformed'
      /** The tool it seems to have meant, if that could be read. */
      readonly name?: string
      readonly raw: string
      readonly problem: string
    }

/** A stretch of the output, in the order of sampling. */
export type OutputPart =
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'content'; readonly text: string }
  | { readonly kind: 'call'; readonly call: ParsedCall }

/** What an output says. */
export interface ParsedOutput {
  /** All thinking blocks together; undefined if there was none. */
  readonly reasoning: string | undefined
  /** The text around the calls; the raw text of malformed ones is with them, and in `parts`. */
  readonly content: string
  readonly calls: readonly ParsedCall[]
  /** Reasoning, text and calls in their order; neighbours of one kind are joined. */
  readonly parts: readonly OutputPart[]
}

/** Parses as text arrives: reasoning and content as early as they are certain, calls when complete. */
export interface StreamingParser {
  push(output: OutputText): readonly OutputPart[]
  /** No more will come: the last parts, and everything together. */
  end(): { readonly parts: readonly OutputPart[]; readonly output: ParsedOutput }
}

/** What counts as a marker of a call or a thought: its text, or only its control token. */
export type Markers = 'text' | 'tokens'

/** How outputs are to be read. */
export interface ParserOptions {
  /** Undefined leaves calls in the content. */
  readonly tools: ToolFormat | undefined
  /** Undefined leaves thinking blocks in the content. */
  readonly reasoning: ReasoningFormat | undefined
  /** The tools that were offered; they type parameters that a format writes as raw text. */
  readonly schemas: readonly ToolDefinition[]
  /** Whether the prompt ended within a thinking block. @default what the format does by itself */
  readonly opensInReasoning?: boolean
  /**
   * The control strings of the vocabulary, if outputs come as pieces made from token ids. Without
   * them every marker counts wherever it is spelled.
   */
  readonly controls?: readonly string[]
  /** Whether markers made of control strings count only as tokens, or spelled out too. @default 'tokens' */
  readonly markers?: Markers
}

/** Every format of tool calls, by name. */
export const toolFormats: readonly ToolFormat[] = Object.keys(toolReadings) as ToolFormat[]

/** Every format of reasoning, by name. */
export const reasoningFormats: readonly ReasoningFormat[] = Object.keys(
  reasoningReadings,
) as ReasoningFormat[]

/** Thrown for a format that no parser reads. */
export class UnknownFormatError extends Error {
  override name = 'UnknownFormatError'
  constructor(kind: string, format: string, known: readonly string[]) {
    super(`No format of ${kind} called ${JSON.stringify(format)}. Known: ${known.join(', ')}.`)
  }
}

/** A parser for one model's way of writing. */
export function openParser(options: ParserOptions): OutputParser {
  const { tools, reasoning } = options
  if (tools !== undefined && !toolFormats.includes(tools)) {
    throw new UnknownFormatError('tool calls', tools, toolFormats)
  }
  if (reasoning !== undefined && !reasoningFormats.includes(reasoning)) {
    throw new UnknownFormatError('reasoning', reasoning, reasoningFormats)
  }
  const controls = options.markers === 'text' ? undefined : options.controls
  const reading = { readers: readersOf(options), controls }
  return {
    open: () => openOutput(reading),
    parse: output => parseOutput(reading, output),
  }
}
