import { type Message, type ToolDefinition, textOf } from '@espalier/text'
import type { Recall, RecallAnswer } from '../../base/core/condenser.ts'
import { codePoints } from './chunk.ts'

/** A text that was condensed, with the number under which its original can be asked for. */
export interface Block {
  readonly number: number
  readonly original: string
  /** The turn before which it was condensed. */
  readonly turn: number
}

/** The blocks of one attempt. */
export interface Blocks {
  /** The number of an original; a new one if it has none. Numbers in `taken` mean something else. */
  numberOf(original: string, turn: number, taken: ReadonlySet<number>): number
  readonly all: readonly Block[]
  /** The blocks there were when turn number `turn` was about to be sampled. */
  fork(turn: number): Blocks
}

/** Opens a memory of blocks; numbers up to `last` are in use already. */
export function makeBlocks(known: readonly Block[] = [], last = 0): Blocks {
  const all = [...known]
  const numbers = new Map(all.map(({ original, number }) => [original, number]))
  return {
    all,
    numberOf(original, turn, taken) {
      const old = numbers.get(original)
      if (old !== undefined) return old
      let number = Math.max(last, all.at(-1)?.number ?? 0) + 1
      while (taken.has(number)) number++
      all.push({ number, original, turn })
      numbers.set(original, number)
      return number
    },
    fork: turn =>
      makeBlocks(
        all.filter(block => block.turn <= turn),
        last,
      ),
  }
}

/** A condensed text as the policy sees it. Nothing in it can pose as the beginning or end of a block. */
export function wrapBlock(number: number, condensed: string): string {
  const inside = condensed.replace(/<(\/?)block_/g, '<$1 block_')
  return `<block_${number}>${inside}</block_${number}>`
}

/** The numbers that messages use as if they were blocks; new blocks keep away from them. */
export function numbersIn(messages: readonly Message[]): ReadonlySet<number> {
  const found = new Set<number>()
  for (const { content } of messages) {
    for (const [, digits] of textOf(content).matchAll(/<\/?block_(\d{1,9})>/g)) {
      found.add(Number(digits))
    }
  }
  return found
}

/** How a block is recalled. */
export interface RecallOptions {
  /** The tool's name; as `extract_condensed` it is the tool that Twinkle's models know. @default 'recall' */
  readonly tool?: string
  /** Most code points that one call gives back. @default 8000 */
  readonly characters?: number
}

const defaults = { tool: 'recall', characters: 8000 }

/** The tool that gives back a block's original, one block a call. */
export function recallOf(blocks: Blocks, options: RecallOptions = {}): Recall {
  const { tool, characters } = { ...defaults, ...options }
  const argument = tool === 'extract_condensed' ? 'blocks' : 'block'
  return {
    definition: definitionOf(tool, argument),
    answer(input, shown) {
      const asked = readNumber(input, argument)
      if (typeof asked === 'string') return refused(asked)
      const block = blocks.all.find(({ number }) => number === asked)
      if (!block) return refused(unknownBlock(asked, blocks))
      return giveBack(block, shown, characters)
    },
  }
}

function definitionOf(name: string, argument: string): ToolDefinition {
  return {
    type: 'function',
    function: {
      name,
      description:
        'Some texts are shown condensed, as <block_N>…</block_N>. Gives back the original text of ' +
        'one such block. Ask for one block a call, for those only that the answer needs, and for ' +
        'none twice.',
      parameters: {
        type: 'object',
        properties: {
          [argument]: {
            type: 'integer',
            minimum: 1,
            description: 'The number N of the block to give back, such as 3 for <block_3>.',
          },
        },
        required: [argument],
      },
    },
  }
}

/** The number that was asked for, under either name, or what is wrong with the question. */
function readNumber(input: unknown, name: string): number | string {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return `Error: arguments must be an object with an integer "${name}".`
  }
  const { blocks, block } = input as { readonly blocks?: unknown; readonly block?: unknown }
  const value = blocks ?? block
  if (value === undefined || value === null) return `Error: missing required argument "${name}".`
  if (Array.isArray(value)) {
    return `Error: "${name}" must be a single integer: ask for one block per call.`
  }
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  if (typeof value === 'string' && /^\s*[+-]?\d{1,9}\s*$/.test(value)) return Number(value)
  return `Error: "${name}" must be an integer, not ${JSON.stringify(value).slice(0, 80)}.`
}

function unknownBlock(number: number, { all }: Blocks): string {
  if (all.length === 0) return `Error: block ${number} not found; no blocks available.`
  return `Error: block ${number} not found; valid block ids are ${describeNumbers(all)}.`
}

/** Numbers as ranges, so that a thousand blocks fit a line: `1 to 12, 14`. */
export function describeNumbers(blocks: readonly Block[]): string {
  const ranges: [number, number][] = []
  for (const { number } of blocks) {
    const last = ranges.at(-1)
    if (last && last[1] === number - 1) last[1] = number
    else ranges.push([number, number])
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from} to ${to}`)).join(', ')
}

/** The numbers that `describeNumbers` wrote. */
export function readNumbers(text: string): readonly number[] {
  return text.split(', ').flatMap(range => {
    const [from = 0, to = from] = range.split(' to ').map(Number)
    // A bound: no list that we wrote is longer.
    const count = Math.min(to - from + 1, 100_000)
    return count >= 1 ? Array.from({ length: count }, (_, index) => from + index) : []
  })
}

function refused(content: string): RecallAnswer {
  return { content, problem: 'invalid-arguments' }
}

/** A block whose original the policy still sees is not written a second time. */
function giveBack(block: Block, shown: readonly Message[], characters: number): RecallAnswer {
  const { number, original } = block
  const length = codePoints(original)
  const cut = Math.max(0, length - characters)
  const text =
    cut === 0 ? original : [...original.slice(0, 2 * characters)].slice(0, characters).join('')
  const content = cut === 0 ? text : `${text}\n[${cut} characters left out]`
  if (shown.some(message => message.role === 'tool' && message.content === content)) {
    return { content: `Block ${number} is already expanded above; re-read it there.` }
  }
  return { content, recalled: { block: number, characters: length - cut, cut } }
}

/** The condensed texts that messages show, by the numbers of their blocks. */
export function blocksIn(messages: readonly Message[]): ReadonlyMap<number, string> {
  const found = new Map<number, string>()
  for (const { content } of messages) {
    const text = textOf(content)
    for (const { index, 0: open, 1: digits } of text.matchAll(/<block_(\d{1,9})>/g)) {
      const end = text.indexOf(`</block_${digits}>`, index)
      if (end >= 0) found.set(Number(digits), text.slice(index + open.length, end))
    }
  }
  return found
}
