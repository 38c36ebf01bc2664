import type { Message } from '@espalier/text'
import type { CondenseCall, CondenseFigures } from '../../base/core/condenser.ts'
import { describeCause } from '../../base/core/failure.ts'
import { type Blocks, numbersIn, wrapBlock } from './blocks.ts'
import { codePoints } from './chunk.ts'
import { type Chunk, chunkMessages, withChunks } from './chunk-messages.ts'
import { wholeBlocks } from './whole-blocks.ts'

/** A chunk to condense. */
export interface ChunkRequest {
  readonly text: string
  /** The question that the text should help to answer, if one is known. */
  readonly query?: string
}

/** What condensing a chunk gave. */
export type CondensedChunk =
  | {
      readonly kind: 'condensed'
      readonly text: string
      /** Tokens that another model took for it. */
      readonly usage?: { readonly prompt: number; readonly sampled: number }
    }
  /** It could not be made shorter, or should not be. */
  | { readonly kind: 'kept' }
  | { readonly kind: 'failed'; readonly problem: string }

/** Condenses one chunk at a time; the same chunk asked for the same question gives the same text. */
export interface ChunkCondenser {
  readonly name: string
  /** Whether its result depends on the attempt, so that other attempts cannot share it. */
  readonly isPersonal?: boolean
  condense(request: ChunkRequest, call: CondenseCall): Promise<CondensedChunk>
}

/** The result of condensing some messages. */
export interface Done {
  readonly messages: readonly Message[]
  readonly condensed: readonly { readonly from: number; readonly to: number }[]
  readonly problems: readonly string[]
  readonly prompt: number
  readonly sampled: number
}

/** How chunks of messages become blocks. */
export interface ChunkWork {
  readonly blocks: Blocks
  /** Cuts a text into chunks without losing anything of it. */
  readonly cut: (text: string) => readonly string[]
  readonly query?: string
  readonly isWorthIt: (text: string) => boolean
  readonly condense: ChunkCondenser['condense']
}

/** Condenses the chunks of some messages side by side and puts numbered blocks in their place. */
export async function condenseChunks(
  messages: readonly Message[],
  isChosen: (message: Message) => boolean,
  { work, call }: { readonly work: ChunkWork; readonly call: CondenseCall },
): Promise<Done> {
  const { query, isWorthIt, blocks } = work
  const chunks = chunksOf(messages, work)
  const isEligible = ({ message, text, isBlock }: MarkedChunk): boolean =>
    !isBlock && isChosen(messages[message]!) && isWorthIt(text)
  const results = await Promise.all(
    chunks.map(chunk =>
      isEligible(chunk)
        ? tryChunk({ text: chunk.text.trim(), ...(query !== undefined && { query }) }, call, work)
        : kept,
    ),
  )
  return putTogether(messages, chunks, { results, blocks, turn: call.turn })
}

const kept: CondensedChunk = { kind: 'kept' }

/** Condenses one chunk; if that fails, the chunk stays as it was and the failure is counted. */
export async function tryChunk(
  request: ChunkRequest,
  call: CondenseCall,
  { condense }: ChunkWork,
): Promise<CondensedChunk> {
  try {
    return await condense(request, call)
  } catch (cause) {
    call.signal.throwIfAborted()
    return { kind: 'failed', problem: describeCause(cause) }
  }
}

/** A chunk, with whether it is a block already. */
export interface MarkedChunk extends Chunk {
  /** It was condensed before, and stays as it is. */
  readonly isBlock: boolean
}

/** The chunks of messages in their order; blocks that stand in them are chunks of their own. */
export function chunksOf(
  messages: readonly Message[],
  { blocks, cut }: ChunkWork,
): readonly MarkedChunk[] {
  const numbers = new Set(blocks.all.map(({ number }) => number))
  const whole = chunkMessages(messages, { size: Number.POSITIVE_INFINITY })
  return whole.flatMap(chunk =>
    wholeBlocks(chunk.text, numbers).flatMap(({ text, isBlock }): readonly MarkedChunk[] =>
      isBlock
        ? [{ ...chunk, text, isBlock }]
        : cut(text).map(piece => ({ ...chunk, text: piece, isBlock })),
    ),
  )
}

/** Used to compare lengths before a block has its number. */
const longestNumber = 999_999

/** Whether a chunk becomes a block: it is shorter, marks included. */
export function isShorter(
  result: CondensedChunk,
  original: string,
): result is Extract<CondensedChunk, { kind: 'condensed' }> {
  if (result.kind !== 'condensed') return false
  return codePoints(wrapBlock(longestNumber, result.text)) < codePoints(original)
}

function putTogether(
  messages: readonly Message[],
  chunks: readonly MarkedChunk[],
  {
    results,
    blocks,
    turn,
  }: {
    readonly results: readonly CondensedChunk[]
    readonly blocks: Blocks
    readonly turn: number
  },
): Done {
  const own = new Set(blocks.all.map(({ number }) => number))
  const foreignNumbers = new Set([...numbersIn(messages)].filter(number => !own.has(number)))
  const condensed: { from: number; to: number }[] = []
  const texts = new Map<Chunk, string>()
  chunks.forEach((chunk, index) => {
    const result = results[index]!
    const original = chunk.text.trim()
    if (!isShorter(result, original)) return
    const from = codePoints(original)
    const block = wrapBlock(blocks.numberOf(original, turn, foreignNumbers), result.text)
    // White space around a passage is what tells passages apart.
    texts.set(
      chunk,
      chunk.text.replace(original, () => block),
    )
    condensed.push({ from, to: codePoints(block) })
  })
  const used = results.flatMap(result => (result.kind === 'condensed' ? [result.usage] : []))
  return {
    messages: withChunks(messages, chunks, chunk => texts.get(chunk) ?? chunk.text),
    condensed,
    problems: results.flatMap(result => (result.kind === 'failed' ? [result.problem] : [])),
    prompt: used.reduce((sum, usage) => sum + (usage?.prompt ?? 0), 0),
    sampled: used.reduce((sum, usage) => sum + (usage?.sampled ?? 0), 0),
  }
}

/** The results of two rounds of condensing as one. */
export function joinDone(first: Done, second: Done): Done {
  return {
    messages: second.messages,
    condensed: [...first.condensed, ...second.condensed],
    problems: [...first.problems, ...second.problems],
    prompt: first.prompt + second.prompt,
    sampled: first.sampled + second.sampled,
  }
}

/** The counts: blocks, their code points before and after, failures, tokens used. */
export function figuresOf({ condensed, problems, prompt, sampled }: Done): CondenseFigures {
  const total = (key: 'from' | 'to'): number => condensed.reduce((sum, each) => sum + each[key], 0)
  return {
    blocks: condensed.length,
    characters: total('from'),
    condensed: total('to'),
    failures: problems.length,
    prompt,
    sampled,
  }
}

/** In words: how many blocks, from and to which length. */
export function reasonOf(done: Done): string {
  const { blocks, characters, condensed } = figuresOf(done)
  const plural = blocks === 1 ? 'block' : 'blocks'
  return `${blocks} ${plural} condensed, ${characters} characters to ${condensed}`
}

/** The first of the problems, if there were any. */
export function problemOf({ problems }: Done): { readonly problem?: string } {
  if (problems.length === 0) return {}
  return { problem: `${problems.length} chunks could not be condensed: ${problems[0]}` }
}
