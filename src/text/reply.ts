import type {
  AssistantMessage,
  CallAttempt,
  Reply,
  ToolCall,
  ToolDefinition,
} from '../core/message.ts'
import type { Profile } from './calibration.ts'
import {
  type OutputParser,
  openParser,
  type ParsedCall,
  type ParsedOutput,
  type ReasoningFormat,
  type TextPiece,
  type ToolFormat,
} from './parser.ts'
import type { Tokenizer } from './tokenizer.ts'

/** How a model writes calls and reasoning; undefined where nobody knows. */
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
}

/** Reads what a policy sampled in its `turn`-th turn. */
export type ReplyReader = (ids: Int32Array, tools: readonly ToolDefinition[], turn: number) => Reply

/** Opens a reader of sampled turns; parsers are kept by the tools on offer, which type arguments. */
export function openReplies(context: ReplyContext): ReplyReader {
  const { tokenizer, stopIds, profile } = context
  const parserFor = openParsers(context)
  const controls = new Set(tokenizer.controls.map(({ id }) => id))
  const ends = new Set(stopIds.filter(id => isMereEnd(profile, tokenizer.tokenOf(id) ?? '')))
  return (ids, tools, turn) => {
    const spoken = ends.has(ids.at(-1) ?? -1) ? ids.subarray(0, -1) : ids
    const output = parserFor(tools).parse(piecesOf(spoken, tokenizer, controls))
    const stop = stopIds.includes(spoken.at(-1) ?? -1) ? tokenizer.tokenOf(spoken.at(-1)!)! : ''
    return toReply(output, { turn, stop, profile })
  }
}

/** Whether a stop token says nothing but that the turn is over; some also close the call before it. */
function isMereEnd({ spoken, called }: Profile, stop: string): boolean {
  return stop === spoken.sampledStop || stop !== called?.sampledStop
}

function openParsers({
  formats,
  profile,
  tokenizer,
}: ReplyContext): (tools: readonly ToolDefinition[]) => OutputParser {
  const controls = tokenizer.controls.map(({ content }) => content)
  const known = new WeakMap<readonly ToolDefinition[], OutputParser>()
  return tools => {
    const found = known.get(tools)
    if (found) return found
    const parser = openParser({
      ...formats,
      schemas: tools,
      controls,
      opensInReasoning: profile.opensThinking,
    })
    known.set(tools, parser)
    return parser
  }
}

/** Sampled ids as text, control tokens apart: a marker that was spelled in letters is none. */
function piecesOf(
  ids: Int32Array,
  tokenizer: Tokenizer,
  controls: ReadonlySet<number>,
): readonly TextPiece[] {
  const pieces: TextPiece[] = []
  let start = 0
  for (let index = 0; index <= ids.length; index++) {
    const isControl = index < ids.length && controls.has(ids[index]!)
    if (index < ids.length && !isControl) continue
    if (index > start) {
      pieces.push({ text: tokenizer.decode(ids.subarray(start, index)), control: false })
    }
    if (isControl) pieces.push({ text: tokenizer.tokenOf(ids[index]!) ?? '', control: true })
    start = index + 1
  }
  return pieces
}

/** What a reply is made of besides what was parsed. */
interface ReplyParts {
  readonly turn: number
  /** The stop token that may still stand at the end of the words. */
  readonly stop: string
  readonly profile: Profile
}

/** What was parsed, as a message; malformed calls stay in its content as they were written. */
function toReply(output: ParsedOutput, { turn, stop, profile }: ReplyParts): Reply {
  const calls = output.calls.map((call, index) => toAttempt(call, callId(turn, index)))
  const toolCalls = calls.flatMap(call => (call.kind === 'parsed' ? [toToolCall(call)] : []))
  const words = withoutEnd(output.parts.map(wordsOf).join(''), stop)
  const { reasoning, content } = withoutBorders(output.reasoning, words, profile)
  const message: AssistantMessage = {
    role: 'assistant',
    content: toolCalls.length > 0 ? content.trim() : content,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
  }
  return { message, calls }
}

/** Thoughts and words without the white space that the template itself puts around them. */
function withoutBorders(
  reasoning: string | undefined,
  words: string,
  { lead, spoken, thinking }: Profile,
): { readonly reasoning: string | undefined; readonly content: string } {
  const content = withoutEnd(words, spoken.tail.trim() === '' ? spoken.tail : '')
  if (reasoning === undefined) return { reasoning, content: withoutStart(content, lead) }
  if (thinking === undefined) return { reasoning, content }
  const before = thinking.end.slice(0, thinking.end.length - thinking.end.trimStart().length)
  const after = thinking.end.slice(thinking.end.trimEnd().length)
  return {
    reasoning: withoutEnd(withoutStart(reasoning, thinking.lead), before),
    content: withoutStart(content, after),
  }
}

function withoutStart(text: string, start: string): string {
  return text.startsWith(start) ? text.slice(start.length) : text
}

function withoutEnd(text: string, end: string): string {
  return text.endsWith(end) ? text.slice(0, text.length - end.length) : text
}

function wordsOf(part: ParsedOutput['parts'][number]): string {
  if (part.kind === 'content') return part.text
  return part.kind === 'call' && part.call.kind === 'malformed' ? part.call.raw : ''
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
