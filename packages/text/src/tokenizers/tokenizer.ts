import { gatherControls } from './controls.ts'
import { readDefinition } from './definition.ts'
import { makeModel } from './models.ts'
import { assemble } from './pipeline.ts'

/** Text to token ids and back, exactly as Hugging Face's Rust implementation does it. */
export interface Tokenizer {
  /** Every id is in [0, size). */
  readonly size: number
  /** All added tokens, special or not, by ascending id. */
  readonly controls: readonly ControlToken[]
  /** The whole text in one pass, with control strings recognised outside `foreign`. */
  encode(text: string, options?: EncodeOptions): Int32Array
  /**
   * A text that is given in parts, some of them as their ids already. It must be cut where a
   * control token begins or ends, because only there are both sides encoded apart.
   */
  encodeParts(parts: readonly (MarkedText | Int32Array)[]): Int32Array
  /** Text as data: no control string is recognised, whatever the text says. */
  encodeOrdinary(text: string): Int32Array
  /** Invalid UTF-8 becomes U+FFFD and unknown ids are skipped, as in the reference. */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string
  /** A decoder for ids that arrive in parts; joined, its answers are what `decode` gives for all. */
  makeDecoder(options?: DecodeOptions): StreamDecoder
  idOf(token: string): number | undefined
  /** The token as the vocabulary writes it; of a control token its content. */
  tokenOf(id: number): string | undefined
  /** Whether the id belongs to a special added token, the kind that `skipSpecial` leaves out. */
  isControl(id: number): boolean
  /** The bytes a token stands for, if tokens are bytes (byte-level BPE, our word level). */
  bytesOf?(id: number): Uint8Array | undefined
}

/** A string that is one token wherever it stands in a text: `<|im_end|>`, `<think>`. */
export interface ControlToken {
  readonly id: number
  readonly content: string
  readonly special: boolean
  /** Whether it takes the white space before it. */
  readonly lstrip: boolean
  /** Whether it takes the white space after it. */
  readonly rstrip: boolean
  /** Whether it counts only between characters that belong to no word. */
  readonly singleWord: boolean
  /** Whether it is looked for in the normalized text instead of the given one. */
  readonly normalized: boolean
}

/** A text and the ranges of it that are foreign. */
export interface MarkedText {
  readonly text: string
  readonly foreign: NonNullable<EncodeOptions['foreign']>
}

/** How a text is encoded. */
export interface EncodeOptions {
  /**
   * UTF-16 ranges `[start, end)` that came from message content. A control string that touches one
   * is data (T6).
   * @default []
   */
  readonly foreign?: readonly (readonly [number, number])[]
}

/** How ids are decoded. */
export interface DecodeOptions {
  /** @default false */
  readonly skipSpecial?: boolean
}

/** Decodes a stream without ever giving half a character. */
export interface StreamDecoder {
  push(ids: ArrayLike<number>): string
  /** What was held back, with U+FFFD for a character that never became whole. */
  end(): string
}

/** What a model folder says about its tokenizer, as parsed JSON. */
export interface TokenizerFiles {
  /** `tokenizer.json` */
  readonly tokenizer: unknown
  /** `tokenizer_config.json`, for control tokens that only it names. */
  readonly config?: unknown
  /**
   * Strings to add as special tokens behind all others, if they are not tokens yet.
   * @default []
   */
  readonly extraSpecialTokens?: readonly string[]
}

/** Builds the tokenizer that a model folder describes. Post-processors are left to chat templates. */
export function openTokenizer(files: TokenizerFiles): Tokenizer {
  const definition = readDefinition(files.tokenizer)
  const model = makeModel(definition)
  const controls = gatherControls(definition.addedTokens, model.vocabulary, {
    config: files.config,
    extra: files.extraSpecialTokens ?? [],
  })
  return assemble(model, controls)
}
