import type { ImagePart, Message, Reply, ToolDefinition } from './message.ts'

/**
 * What happens to tokens that the template would now write differently: `preserve` keeps them and
 * appends; `faithful` renders as the template would and starts a new path where it rewrites.
 */
export type History = 'preserve' | 'faithful'

/** A sampled turn and the observations that follow it. */
export interface BridgeRequest {
  /** The whole path so far, the sampled turn at its end. */
  readonly path: Int32Array
  /** Where in `path` the sampled turn begins. */
  readonly turnStart: number
  /** The conversation with the new messages at its end. */
  readonly messages: readonly Message[]
  /** How many of `messages`, counted from the end, are new observations. */
  readonly observed: number
  readonly tools: readonly ToolDefinition[]
}

/** The tokens between two samples: appended to the path, or a new path that begins differently. */
export type Bridge =
  | { readonly kind: 'extends'; readonly ids: Int32Array }
  | {
      readonly kind: 'rewrites'
      /** How many tokens of the old path the new one keeps. */
      readonly keep: number
      /** What follows them, ending where the policy continues. */
      readonly ids: Int32Array
      /** The cause in words. */
      readonly reason: string
    }

/** A piece of reasoning or of words in a turn that is still being sampled. */
export interface TurnPiece {
  readonly kind: 'reasoning' | 'text'
  readonly text: string
}

/** Reads a turn while it is sampled. */
export interface TurnReader {
  /** Takes the next tokens; returns the reasoning and words that are certain now. */
  push(ids: Int32Array): readonly TurnPiece[]
}

/** Where the tokens of an image stand: `[start, end)`. */
export interface ImageRange {
  readonly part: ImagePart
  readonly start: number
  readonly end: number
}

/** How the model of a renderer takes images. */
export interface RendererImages {
  /** The family of processors it belongs to. */
  readonly family: string
  /** What stands for one image before its tokens are laid out, which is what servers are sent. */
  readonly placeholder: Int32Array
  /** Ids that only images have: whoever samples one shows nothing by it. */
  readonly ids: ReadonlySet<number>
  /** How many tokens an image takes. Throws an `ImageRefusedError` if the model takes none of its size. */
  count(part: ImagePart): number
  /** Where the images of these messages stand in what they were rendered as, in their order. */
  locate(ids: Int32Array, messages: readonly Message[]): readonly ImageRange[]
}

/** The border between messages and tokens. Tokens the policy sampled never cross it twice. */
export interface Renderer {
  /** The model folder it was opened from, in short. */
  readonly name: string
  readonly history: History
  /** The ids that end an assistant turn. */
  readonly stopIds: readonly number[]
  /** Ids are in [0, vocabulary). */
  readonly vocabulary: number
  /** How its model takes images, if it does. */
  readonly images?: RendererImages
  /** Why its model takes none, in words. */
  readonly noImages?: string | undefined
  /** A whole context, ending where the policy continues. Equal ones may share their array. */
  render(messages: readonly Message[], tools: readonly ToolDefinition[]): Int32Array
  /** What follows a sampled turn: its closing if missing, the new messages, the next opening. */
  bridge(request: BridgeRequest): Bridge
  /** What the policy said in its `turn`-th turn, as a message with ids for its calls. */
  parse(ids: Int32Array, tools: readonly ToolDefinition[], turn: number): Reply
  /** Begins to read a turn while it is sampled; without it, turns are read when they are over. */
  openTurn?(tools: readonly ToolDefinition[]): TurnReader
  /** Tokens for a message that a chat-only server answered; such a path is marked re-encoded. */
  encodeReply(message: Reply['message'], tools: readonly ToolDefinition[]): Int32Array
  /** Text for people to read. */
  decode(ids: Int32Array): string
}
