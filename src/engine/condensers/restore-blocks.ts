import { type Message, textOf } from '@espalier/text'
import type { Condensation, CondenseCall } from '../../base/core/condenser.ts'
import {
  type Block,
  type Blocks,
  describeNumbers,
  makeBlocks,
  numbersIn,
  readNumbers,
} from './blocks.ts'
import {
  type ChunkWork,
  chunksOf,
  isShorter,
  type MarkedChunk,
  tryChunk,
} from './condense-chunks.ts'

/** What a note says of blocks that are not shown any more but can still be recalled. */
export function stillThere(blocks: readonly Block[]): string {
  return `These blocks can still be given back: ${describeNumbers(blocks)}.`
}

const stillTherePattern = /These blocks can still be given back: ([\d, to]+)\./g

/** How the texts of an attempt were condensed. */
export interface RestoreParts {
  /** The work as it was for an attempt with these blocks and this opening. */
  workOf(blocks: Blocks, opening: readonly Message[]): ChunkWork
  /** Which messages are condensed before any turn is left out. */
  olderIn(
    messages: readonly Message[],
    call: Pick<CondenseCall, 'opening'>,
  ): (message: Message) => boolean
}

/**
 * Rebuilds an attempt's memory from what was shown before and after each condensing: texts are cut as
 * they were then, and the block in a chunk's place gives the chunk its number. Turns that were left out
 * at once are condensed again, unless the note says that all their chunks became blocks. If that gives
 * fewer blocks than the note lists, they are forgotten, and their numbers stay in use.
 */
export async function restoreBlocks(
  past: readonly Condensation[],
  call: CondenseCall,
  { workOf, olderIn }: RestoreParts,
): Promise<Blocks> {
  let blocks = makeBlocks()
  let last = 0
  for (const each of past) {
    const work = workOf(blocks, each.before.slice(0, each.opening))
    const isOlder = olderIn(each.before, each)
    const { found, named } = await blocksOf(each, call, { ...work, isOlder })
    for (const number of named) last = Math.max(last, number)
    const numbers = new Map([...found, ...blocks.all].map(block => [block.number, block]))
    const all = [...numbers.values()].sort((one, other) => one.number - other.number)
    blocks = makeBlocks(all, last)
  }
  return blocks
}

/** The blocks that one condensing made, and all numbers that it named. */
async function blocksOf(
  past: Condensation,
  call: CondenseCall,
  work: ChunkWork & { readonly isOlder: (message: Message) => boolean },
): Promise<{ readonly found: readonly Block[]; readonly named: readonly number[] }> {
  const { before, after, turn } = past
  const known = new Map(work.blocks.all.map(({ number, original }) => [number, original]))
  const foreign = new Set([...numbersIn(before)].filter(number => !known.has(number)))
  const standsFor = partnerIn(past)
  const found = new Map<number, string>()
  const removed = new Set<string>()
  for (const chunks of textsOf(chunksOf(before, work))) {
    const { message, part } = chunks[0]!
    const partner = standsFor(message)
    if (partner) readBlocks(chunks, textAt(partner, part), { found, foreign })
    else if (work.isOlder(before[message]!)) {
      for (const original of worthIt(chunks, work)) removed.add(original)
    }
  }
  for (const original of [...known.values(), ...found.values()]) removed.delete(original)
  const listed = numbersListed(after)
  const missing = listed.filter(number => !known.has(number) && !found.has(number))
  const lost = await ofCount([...removed], missing.length, { work, call })
  lost.forEach((original, index) => {
    found.set(missing[index]!, original)
  })
  const named = [...listed, ...[...numbersIn(after)].filter(number => !foreign.has(number))]
  return { found: [...found].map(([number, original]) => ({ number, original, turn })), named }
}

/** Which of some originals became blocks, if that can be told: all, or those that do when condensed again. */
async function ofCount(
  originals: readonly string[],
  count: number,
  { work, call }: { readonly work: ChunkWork; readonly call: CondenseCall },
): Promise<readonly string[]> {
  if (count === 0 || originals.length <= count) return originals.length === count ? originals : []
  const { query } = work
  const results = await Promise.all(
    originals.map(text => tryChunk({ text, ...(query !== undefined && { query }) }, call, work)),
  )
  const again = originals.filter((original, index) => isShorter(results[index]!, original))
  return again.length === count ? again : []
}

/** The message that replaced an earlier one: the opening stays, then the oldest turns may be gone. */
function partnerIn({
  before,
  after,
  opening,
}: Condensation): (message: number) => Message | undefined {
  const shift = after.length - before.length
  let kept = before.length
  while (kept > opening && isSame(before[kept - 1]!, after[kept - 1 + shift])) kept--
  return message => {
    if (message < opening) return after[message]
    return message < kept ? undefined : after[message + shift]
  }
}

function isSame(one: Message, other: Message | undefined): boolean {
  return one.role === other?.role && idOf(one) === idOf(other)
}

function idOf(message: Message): string | undefined {
  return message.role === 'tool' ? message.tool_call_id : undefined
}

/** Chunks that lie in one text. */
function textsOf(chunks: readonly MarkedChunk[]): Iterable<readonly MarkedChunk[]> {
  const texts = new Map<string, MarkedChunk[]>()
  for (const chunk of chunks) {
    const key = `${chunk.message}:${chunk.part ?? ''}`
    const known = texts.get(key)
    if (known) known.push(chunk)
    else texts.set(key, [chunk])
  }
  return texts.values()
}

function textAt({ content }: Message, part: number | undefined): string {
  if (part === undefined || typeof content !== 'object') return textOf(content)
  const found = content?.[part]
  return found?.type === 'text' ? found.text : ''
}

function worthIt(chunks: readonly MarkedChunk[], { isWorthIt }: ChunkWork): readonly string[] {
  return chunks
    .filter(({ text, isBlock }) => !isBlock && isWorthIt(text))
    .map(({ text }) => text.trim())
}

/** Compares a text with its condensed form; if they differ by anything but blocks, it was trimmed. */
function readBlocks(
  chunks: readonly MarkedChunk[],
  shown: string,
  {
    found,
    foreign,
  }: { readonly found: Map<number, string>; readonly foreign: ReadonlySet<number> },
): void {
  let at = 0
  for (const { text } of chunks) {
    if (shown.startsWith(text, at)) {
      at += text.length
      continue
    }
    const original = text.trim()
    if (original === '') return
    const [lead = '', trail = ''] = text.split(original)
    const start = at + lead.length
    const digits = /^<block_(\d{1,9})>/.exec(shown.slice(start, start + 20))?.[1]
    if (digits === undefined || foreign.has(Number(digits))) return
    const close = `</block_${digits}>`
    const end = shown.indexOf(close, start)
    found.set(Number(digits), original)
    if (end < 0) return
    at = end + close.length + trail.length
  }
}

/** Numbers that the note on what was left out lists, in their order. */
function numbersListed(messages: readonly Message[]): readonly number[] {
  const listed = messages.flatMap(({ content }) =>
    [...textOf(content).matchAll(stillTherePattern)].flatMap(([, list = '']) => readNumbers(list)),
  )
  return [...new Set(listed)].sort((one, other) => one - other)
}
