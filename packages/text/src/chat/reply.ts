import type { CallAttempt, Reply, ToolCall, ToolDefinition } from '../message.ts'
import {
  type Markers,
  type OutputParser,
  type OutputPart,
  openParser,
  type ParsedCall,
  type ParsedOutput,
  type ReasoningFormat,
  type TextPiece,
  type ToolFormat,
} from '../parsers/parser.ts'
import type { Tokenizer } from '../tokenizers/tokenizer.ts'
import type { Profile } from './calibration/calibration.ts'

/** How a model writes calls and reasoning; undefined if nobody knows. */
export interface Formats {
  readonly tools: ToolFormat | undefined
  readonly reasoning: ReasoningFormat | undefined
}

/** What reading replies needs. */
export interface ReplyContext {
  readonly formats: Formats
  readonly profile: Profile
  readonly tokenizer: Tokenizer
  readonly stopIds: readonly number[]
  readonly markers: Markers
}

/** Reads what a policy sampled in its `turn`-th turn. */
export type ReplyReader = (ids: Int32Array, tools: readonly ToolDefinition[], turn: number) => Reply

/** Opens a reader of sampled turns; parsers are kept by the tools on offer, which type arguments. */
export function makeReplies(context: ReplyContext): ReplyReader {
  const { tokenizer, stopIds, profile } = context
  const parserFor = makeParsers(context)
  const piecesOf = makePieces(tokenizer)
  const borders = bordersOf(profile)
  const ends = new Set(stopIds.filter(id => isMereEnd(profile, tokenizer.tokenOf(id) ?? '')))
  return (ids, tools, turn) => {
    const length = ends.has(ids[ids.length - 1] ?? -1) ? ids.length - 1 : ids.length
    const output = parserFor(tools).parse(piecesOf(ids, length))
    const last = ids[length - 1] ?? -1
    const stop = stopIds.includes(last) ? tokenizer.tokenOf(last)! : ''
    return toReply(output, { turn, stop, borders })
  }
}

/** Whether a stop token only ends the turn; some also close the call before it. */
function isMereEnd({ spoken, called }: Profile, stop: string): boolean {
  return stop === spoken.sampledStop || stop !== called?.sampledStop
}

/** Opens the parsers of outputs, one for every list of tools. */
export function makeParsers({
  formats,
  profile,
  tokenizer,
  markers,
}: ReplyContext): (tools: readonly ToolDefinition[]) => OutputParser {
  const controls = tokenizer.controls.map(({ content }) => content)
  const known = new WeakMap<readonly ToolDefinition[], OutputParser>()
  const none: readonly ToolDefinition[] = []
  return offered => {
    const tools = offered.length > 0 ? offered : none
    const found = known.get(tools)
    if (found) return found
    const parser = openParser({
      ...formats,
      schemas: tools,
      controls,
      markers,
      opensInReasoning: profile.opensThinking,
    })
    known.set(tools, parser)
    return parser
  }
}

/** The first ids as pieces of text, with control tokens told apart from text that only looks like one. */
function makePieces(tokenizer: Tokenizer): (ids: Int32Array, length: number) => TextPiece[] {
  const isControl = makeTable(tokenizer.controls.map(({ id }) => id))
  return (ids, length) => {
    const pieces: TextPiece[] = []
    let start = 0
    const addText = (end: number) => {
      if (end === start) return
      pieces.push({ text: tokenizer.decode(ids.subarray(start, end)), control: false })
    }
    for (let index = 0; index < length; index++) {
      if (!isControl(ids[index]!)) continue
      addText(index)
      pieces.push({ text: tokenizer.tokenOf(ids[index]!) ?? '', control: true })
      start = index + 1
    }
    addText(length)
    return pieces
  }
}

/** Tests whether an id is in the list, by a table over their range: mostly they are neighbours, so it is small. */
function makeTable(list: readonly number[]): (id: number) => boolean {
  const first = list.reduce((least, id) => Math.min(least, id), Number.MAX_SAFE_INTEGER)
  const last = list.reduce((most, id) => Math.max(most, id), first - 1)
  const table = new Uint8Array(last - first + 1)
  for (const id of list) table[id - first] = 1
  return id => table[id - first] === 1
}

/** The white space that a template itself puts around thoughts and words. */
interface Borders {
  readonly beforeWords: string
  readonly afterWords: string
  readonly beforeThoughts: string
  readonly afterThoughts: string
  readonly beforeWordsBehindThoughts: string
}

function bordersOf({ lead, spoken, thinking = { lead: '', end: '' } }: Profile): Borders {
  const { end } = thinking
  return {
    beforeWords: lead,
    afterWords: spoken.tail.trim() === '' ? spoken.tail : '',
    beforeThoughts: thinking.lead,
    afterThoughts: end.slice(0, end.length - end.trimStart().length),
    beforeWordsBehindThoughts: end.slice(end.trimEnd().length),
  }
}

/** What a reply is made of besides what was parsed. */
interface ReplyParts {
  readonly turn: number
  /** The stop token that may still stand at the end of the words. */
  readonly stop: string
  readonly borders: Borders
}

/** What was parsed, as a message; malformed calls stay in its content as they were written. */
function toReply(output: ParsedOutput, { turn, stop, borders }: ReplyParts): Reply {
  const calls = output.calls.map((call, index) => toAttempt(call, callId(turn, index)))
  const parsed = calls.filter(call => call.kind === 'parsed')
  const all = parsed.length === calls.length ? output.content : wordsOf(output.parts)
  const words = withoutEnd(withoutEnd(all, stop), borders.afterWords)
  const message = toMessage(output.reasoning, words, borders)
  if (parsed.length > 0) {
    message.content = message.content.trim()
    message.tool_calls = parsed.map(toToolCall)
  }
  return { message, calls }
}

/** A message that is still being made, so that it is made only once. */
interface Draft {
  readonly role: 'assistant'
  content: string
  readonly reasoning_content?: string
  tool_calls?: readonly ToolCall[]
}

/** A message of thoughts and words, without the white space around them. */
function toMessage(reasoning: string | undefined, words: string, borders: Borders): Draft {
  const role = 'assistant'
  if (reasoning === undefined) return { role, content: withoutStart(words, borders.beforeWords) }
  const thoughts = withoutStart(reasoning, borders.beforeThoughts)
  return {
    role,
    content: withoutStart(words, borders.beforeWordsBehindThoughts),
    reasoning_content: withoutEnd(thoughts, borders.afterThoughts),
  }
}

function withoutStart(text: string, start: string): string {
  return text.startsWith(start) ? text.slice(start.length) : text
}

function withoutEnd(text: string, end: string): string {
  return text.endsWith(end) ? text.slice(0, text.length - end.length) : text
}

/** Words and malformed calls, in the order of sampling. */
function wordsOf(parts: readonly OutputPart[]): string {
  let words = ''
  for (const part of parts) {
    if (part.kind === 'content') words += part.text
    else if (part.kind === 'call' && part.call.kind === 'malformed') words += part.call.raw
  }
  return words
}

/** Nine letters and digits, which even the strictest templates take: turn and place. */
function callId(turn: number, index: number): string {
  return `c${String(turn).padStart(5, '0')}${String(index).padStart(3, '0')}`
}

function toAttempt(call: ParsedCall, id: string): CallAttempt {
  if (call.kind === 'malformed') return { ...call, id }
  return { kind: 'parsed', id: call.id ?? id, name: call.name, arguments: call.arguments }
}

function toToolCall(call: Extract<CallAttempt, { kind: 'parsed' }>): ToolCall {
  const { id, name, arguments: text } = call
  return { id, type: 'function', function: { name, arguments: text } }
}
