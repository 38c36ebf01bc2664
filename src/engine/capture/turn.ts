import type { AssistantMessage, Message, ToolDefinition } from '@espalier/text'
import type { ImagePlace } from '../../base/core/image.ts'
import type { Finish } from '../../base/core/policy.ts'
import type { SampledSegment } from '../../base/core/segment.ts'
import type { TokenBuffer } from '../rollout/token-buffer.ts'
import type { Keys } from './message-key.ts'

/** Why a path does not go on from what was sampled before. */
const forkCauses = [
  'again',
  'answer',
  'calls',
  'compaction',
  'continues',
  'conversation',
  'prompt',
  'reasoning',
  'result',
  'template',
  'tools',
] as const

/** Names why a path forks. */
export type ForkCause = (typeof forkCauses)[number]

/** A fork: its cause, by name and in words. */
export interface ForkReason {
  readonly cause: ForkCause
  readonly reason: string
}

/** A fork from a known conversation, and how many of its messages the new one repeats. */
export interface Fork extends ForkReason {
  readonly of: CapturedTurn
  readonly shared: number
}

/** The prompt from which a request will be answered. */
export interface Prompted {
  /** What the policy is shown, as messages. */
  readonly messages: readonly Message[]
  /** The key of each of them. */
  readonly keys: Keys
  /** How many of them were said before on the path that this one goes on from. */
  readonly known: number
  readonly tools: readonly ToolDefinition[]
  readonly toolsKey: string
  /** The turn whose path this one shares its first `keep` tokens with. */
  readonly base: CapturedTurn | undefined
  readonly keep: number
  /** The tokens behind them, up to where the policy continues. */
  readonly given: Int32Array
  /** All of it. */
  readonly tokens: TokenBuffer
  /** The images that they show, in the order of their tokens. */
  readonly images: readonly ImagePlace[]
  /** A name for all these tokens, and for what their images show. */
  readonly tokensKey: string
  /** Turns that were sampled on this path before, at least. */
  readonly depth: number
  /** Why the template now writes earlier turns differently, if it does. */
  readonly rewrite: string | undefined
}

/** One answer with everything it was drawn from. */
export interface CapturedTurn extends Prompted {
  /** Its number in the order of arrival. */
  readonly number: number
  readonly segments: readonly SampledSegment[]
  readonly finish: Finish
  /** What was said back. */
  readonly message: AssistantMessage
  /** The keys of the conversation, the answer's included. */
  readonly saidKeys: Keys
  /** Where it began and ended in the attempt's order of events. */
  readonly began: number
  readonly ended: number
  /** Its request died before it was over. */
  readonly isCut: boolean
}

/**
 * A turn behind its prompt, field by field: objects of one shape are a fraction of what spread ones
 * cost, and every answer of every open attempt keeps one.
 */
export function openTurn(
  prompted: Prompted,
  own: Omit<CapturedTurn, keyof Prompted>,
): CapturedTurn {
  return {
    messages: prompted.messages,
    keys: prompted.keys,
    known: prompted.known,
    tools: prompted.tools,
    toolsKey: prompted.toolsKey,
    base: prompted.base,
    keep: prompted.keep,
    given: prompted.given,
    tokens: prompted.tokens,
    images: prompted.images,
    tokensKey: prompted.tokensKey,
    depth: prompted.depth,
    rewrite: prompted.rewrite,
    number: own.number,
    segments: own.segments,
    finish: own.finish,
    message: own.message,
    saidKeys: own.saidKeys,
    began: own.began,
    ended: own.ended,
    isCut: own.isCut,
  }
}

/** How many tokens lie on the path before a turn's own. */
export function promptLength({ keep, given }: Pick<Prompted, 'keep' | 'given'>): number {
  return keep + given.length
}

/** How many tokens lie on the path to a turn's end. */
export function turnLength(turn: CapturedTurn): number {
  return turn.segments.reduce((sum, { ids }) => sum + ids.length, promptLength(turn))
}
