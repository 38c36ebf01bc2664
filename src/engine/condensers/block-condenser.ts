import type { Message } from '@espalier/text'
import type { CondenseCall, Condensed, Condenser, Condensing } from '../../base/core/condenser.ts'
import { type Blocks, makeBlocks, type RecallOptions, recallOf } from './blocks.ts'
import { type ChunkOptions, chunkText, codePoints } from './chunk.ts'
import {
  type ChunkCondenser,
  type ChunkWork,
  type CondensedChunk,
  chunksOf,
  condenseChunks,
  type Done,
  figuresOf,
  joinDone,
  problemOf,
  reasonOf,
} from './condense-chunks.ts'
import { makeOnce } from './once.ts'
import { aroundQuestion, questionIn } from './question.ts'
import { type RestoreParts, restoreBlocks, stillThere } from './restore-blocks.ts'
import { trimToFit } from './trim.ts'
import { describeTurns, goneNote, leaveOutOldest, turnsOf } from './turns.ts'

/** What is condensed, into chunks of which size, and how it can be recalled. */
export interface BlockOptions {
  readonly chunk?: ChunkOptions
  /** The fewest code points worth condensing. @default 200 */
  readonly minimum?: number
  /** Whose messages of the opening are condensed. @default ['user'] */
  readonly roles?: readonly Message['role'][]
  /** Whether the opening is condensed before the first turn. @default true */
  readonly openings?: boolean
  /** Chunks that are left as they are. @default those that begin with `Question:` */
  readonly skip?: RegExp
  /**
   * Finds what the texts should help to answer; where it stands in a text it is left as it is.
   * @default the line that begins with `Question:`, else the question that a user's last message begins or ends with
   */
  readonly question?: (opening: readonly Message[]) => string | undefined
  /** Turns, counted from the last, that stay as they are. @default 1 */
  readonly keep?: number
  /** `false`: what is condensed is gone. */
  readonly recall?: RecallOptions | false
}

type Settings = Required<Omit<BlockOptions, 'recall'>> & Pick<BlockOptions, 'recall'>

const defaults = {
  chunk: {},
  minimum: 200,
  roles: ['user'],
  openings: true,
  skip: /^\s*Question:/,
  question: questionIn,
  keep: 1,
} satisfies BlockOptions

/** A condenser that replaces chunks by numbered blocks whose originals can be recalled. */
export function blockCondenser(condenser: ChunkCondenser, options: BlockOptions = {}): Condenser {
  const settings: Settings = { ...defaults, ...options }
  if (!(settings.minimum >= 1)) {
    throw new RangeError(`A condenser's minimum is ${settings.minimum}; it must be at least 1.`)
  }
  return {
    name: condenser.name,
    condensesOpenings: settings.openings,
    ...openersOf(settings, sharing(condenser)),
  }
}

/** Condenses each distinct chunk once for all attempts, unless the attempt's own policy condenses. */
function sharing({ isPersonal, condense }: ChunkCondenser): ChunkCondenser['condense'] {
  if (isPersonal) return condense
  const once = makeOnce<CondensedChunk>()
  return (request, call) =>
    once.do([request.text, request.query ?? ''], call, () => condense(request, call))
}

function openersOf(
  settings: Settings,
  condense: ChunkCondenser['condense'],
): Required<Pick<Condenser, 'open' | 'reopen'>> {
  const { chunk, minimum, question, recall } = settings
  const skip = new RegExp(settings.skip.source, settings.skip.flags.replace(/[gy]/g, ''))
  const workOf = (blocks: Blocks, opening: readonly Message[]): ChunkWork => {
    const query = question(opening)
    const isWorthIt = (text: string): boolean =>
      codePoints(text) >= minimum && !skip.test(text) && text.trim() !== query
    const cut = (text: string): readonly string[] =>
      aroundQuestion(text, query).flatMap(part => cutApart(part, skip, chunk))
    return { blocks, cut, isWorthIt, condense, ...(query !== undefined && { query }) }
  }
  const open = (blocks: Blocks): Condensing => ({
    condense(messages, call) {
      const work = workOf(blocks, messages.slice(0, call.opening))
      const tools = { work, settings, call }
      return call.turn === 0 ? condenseOpening(messages, tools) : condenseTurns(messages, tools)
    },
    ...(recall !== false && { recall: recallOf(blocks, recall) }),
    fork: turn => open(blocks.fork(turn)),
  })
  return {
    open: () => open(makeBlocks()),
    reopen: async (past, call) => {
      const parts = {
        workOf,
        olderIn: (...given: Parameters<RestoreParts['olderIn']>) => olderIn(...given, settings),
      }
      return open(await restoreBlocks(past, call, parts))
    },
  }
}

/** Chunks of a text; a first line that `skip` matches becomes a chunk of its own, so that the rest can be condensed. */
function cutApart(text: string, skip: RegExp, options: ChunkOptions): readonly string[] {
  const found = skip.exec(text)
  const end = found?.index === 0 ? text.indexOf('\n', found[0].length) + 1 : 0
  if (end === 0) return chunkText(text, options)
  return [text.slice(0, end), ...chunkText(text.slice(end), options)]
}

interface Tools {
  readonly work: ChunkWork
  readonly settings: Settings
  readonly call: CondenseCall
}

async function condenseOpening(messages: readonly Message[], tools: Tools): Promise<Condensed> {
  const { roles } = tools.settings
  const done = await condenseChunks(messages, ({ role }) => roles.includes(role), tools)
  const figures = figuresOf(done)
  if (done.condensed.length > 0) {
    return { kind: 'rewritten', messages: done.messages, reason: reasonOf(done), figures }
  }
  return { kind: 'unchanged', reason: whyNothing(messages, tools), ...problemOf(done), figures }
}

/** Why an opening was not condensed: mostly because its texts are short. */
function whyNothing(messages: readonly Message[], { work, settings }: Tools): string {
  const { minimum, roles } = settings
  const texts = chunksOf(messages, work)
    .filter(({ message }) => roles.includes(messages[message]!.role))
    .map(({ text }) => text.trim())
  if (texts.some(text => work.isWorthIt(text))) return 'no text of the opening became shorter'
  const longest = Math.max(0, ...texts.map(codePoints))
  return `no text of the opening has the minimum of ${minimum} characters; the longest has ${longest}`
}

/**
 * Older turns first; if that is not enough the oldest are left out, then what the tools of the
 * last turns said is condensed too, and in the end trimmed.
 */
async function condenseTurns(messages: readonly Message[], tools: Tools): Promise<Condensed> {
  const { call, settings } = tools
  const older = await condenseChunks(messages, olderIn(messages, call, settings), tools)
  const left = leaveOutOldest(turnsOf(older.messages, call), call, {
    note: count => noteOf(count, tools),
  })
  if (call.count(left.messages) <= call.tokens) {
    return describeCondensed(messages, left.messages, { done: older, leftOut: left.count })
  }
  // What was recalled is what the policy wants to read next: that stays.
  const name = toolName(tools)
  const isOutput = (each: Message): boolean => each.role === 'tool' && each.name !== name
  const last = await condenseChunks(left.messages, isOutput, tools)
  const done = joinDone(older, last)
  return describeCondensed(messages, trimToFit(last.messages, call), { done, leftOut: left.count })
}

/** Which messages belong neither to the opening nor to the last turns. */
function olderIn(
  messages: readonly Message[],
  call: Pick<CondenseCall, 'opening'>,
  { keep }: Settings,
): (message: Message) => boolean {
  const spared = new Set(turnsOf(messages, call).turns.slice(-Math.max(1, keep)).flat())
  const opening = new Set(messages.slice(0, call.opening))
  return message => !opening.has(message) && !spared.has(message)
}

function toolName({ settings: { recall }, work: { blocks } }: Tools): string | undefined {
  return recall === false ? undefined : recallOf(blocks, recall).definition.function.name
}

function describeCondensed(
  before: readonly Message[],
  after: readonly Message[],
  { done, leftOut }: { readonly done: Done; readonly leftOut: number },
): Condensed {
  const figures = { ...figuresOf(done), leftOut }
  if (before.length === after.length && before.every((each, at) => each === after[at])) {
    return { kind: 'unchanged', ...problemOf(done), figures }
  }
  const reasons = [
    ...(done.condensed.length > 0 ? [reasonOf(done)] : []),
    ...(leftOut > 0 ? [`${describeTurns(leftOut)} left out`] : []),
  ]
  const reason = reasons.length > 0 ? reasons.join('; ') : 'tool outputs trimmed'
  return { kind: 'rewritten', messages: after, reason, figures }
}

function noteOf(count: number, { settings, work: { blocks } }: Tools): string {
  const note = goneNote(count)
  if (settings.recall === false || blocks.all.length === 0) return note
  return `${note} ${stillThere(blocks.all)}`
}
