import type {
  AssistantMessage,
  CallAttempt,
  Reply,
  ToolCall,
  ToolDefinition,
} from '../core/message.ts'
import type { History, Renderer } from '../core/renderer.ts'
import { type BridgeContext, bridgeIds, shift } from './bridge.ts'
import { calibrate, type Profile } from './calibration.ts'
import { type Chat, openChat } from './chat.ts'
import { faithfulBridge } from './history.ts'
import type { ModelFiles } from './model-folder.ts'
import {
  detectFormats,
  type OutputParser,
  openParser,
  type ParsedCall,
  type ParsedOutput,
  type ReasoningFormat,
  type TextPiece,
  type ToolFormat,
} from './parser.ts'
import { patchTemplate, type TemplatePatch } from './patches.ts'
import { openTokenizer, type Tokenizer } from './tokenizer.ts'
import { replaceToolInstruction, type ToolInstruction } from './tool-instruction.ts'

/** How a model folder is used. */
export interface RendererOptions {
  /** @default 'preserve' */
  readonly history?: History
  /** Values the chat template may ask for, such as `enable_thinking`. */
  readonly templateVariables?: Readonly<Record<string, unknown>>
  /** Replaces the sentence in which the template offers tools. */
  readonly toolInstruction?: ToolInstruction
  /** How the model writes calls. @default what the template tells */
  readonly toolFormat?: ToolFormat
  /** How the model writes reasoning. @default what the template tells */
  readonly reasoningFormat?: ReasoningFormat
  /** Whether known defects of published templates are mended. @default true */
  readonly patch?: boolean
  /** Strings to treat as control tokens though the tokenizer does not name them. */
  readonly extraSpecialTokens?: readonly string[]
  /** The day a template is told it is. */
  readonly clock: () => Date
}

/** A renderer made from a model folder, with what was found out about it. */
export interface ModelRenderer extends Renderer {
  readonly tokenizer: Tokenizer
  readonly profile: Profile
  readonly chat: Chat
  readonly formats: {
    readonly tools: ToolFormat | undefined
    readonly reasoning: ReasoningFormat | undefined
  }
  readonly patches: readonly TemplatePatch[]
}

/** Opens the border between messages and tokens for a model folder; its template is probed once. */
export function createRenderer(files: ModelFiles, options: RendererOptions): ModelRenderer {
  const {
    history = 'preserve',
    templateVariables = {},
    toolInstruction,
    clock,
    patch = true,
  } = options
  const tokenizer = openTokenizer({
    tokenizer: files.tokenizer,
    config: files.config,
    extraSpecialTokens: options.extraSpecialTokens ?? [],
  })
  const patched = patch ? patchTemplate(files.template) : { source: files.template, applied: [] }
  const template = toolInstruction
    ? replaceToolInstruction(patched.source, toolInstruction)
    : patched.source
  const chat = openChat({
    template,
    ...(files.toolTemplate !== undefined && { toolTemplate: files.toolTemplate }),
    tokenizer,
    config: files.config,
    variables: templateVariables,
    clock,
  })
  const profile = calibrate(chat, tokenizer.controls)
  const stopIds = stopIdsOf(profile, files, tokenizer)
  const detected = detectFormats(
    files.toolTemplate ?? template,
    tokenizer.controls.map(({ content }) => content),
  )
  const formats = {
    tools: options.toolFormat ?? detected.tools,
    reasoning: options.reasoningFormat ?? detected.reasoning,
  }
  const context: BridgeContext = {
    chat,
    profile,
    tokenizer,
    stopIds,
    closerIds: idsOf(profile.closers, tokenizer),
  }
  const parserFor = openParsers(formats, profile, tokenizer)

  return {
    name: files.name,
    history,
    stopIds,
    vocabulary: tokenizer.size,
    tokenizer,
    profile,
    chat,
    formats,
    patches: patched.applied,
    render(messages, tools) {
      const { text, foreign } = chat.render({ messages, tools, opensTurn: true })
      return tokenizer.encode(text, { foreign })
    },
    bridge: request =>
      history === 'faithful'
        ? faithfulBridge(context, request)
        : { kind: 'extends', ids: bridgeIds(context, request) },
    parse(ids, tools, turn) {
      const spoken = stopIds.includes(ids.at(-1) ?? -1) ? ids.subarray(0, -1) : ids
      return toReply(parserFor(tools).parse(piecesOf(spoken, tokenizer)), turn)
    },
    encodeReply: (message, tools) => encodeTurn(context, message, tools),
    decode: ids => tokenizer.decode(ids),
  }
}

function idsOf(strings: readonly string[], tokenizer: Tokenizer): ReadonlySet<number> {
  return new Set(strings.map(string => tokenizer.idOf(string)).filter(id => id !== undefined))
}

/** Where samples stop: what the template ends turns with, and what the folder calls an end. */
function stopIdsOf(profile: Profile, files: ModelFiles, tokenizer: Tokenizer): readonly number[] {
  const named = files.config.eos_token
  const content =
    typeof named === 'string' ? named : (named as { content?: string } | undefined)?.content
  const end = content === undefined ? undefined : tokenizer.idOf(content)
  const known = files.endIds.filter(id => id < tokenizer.size)
  return [
    ...new Set([...idsOf(profile.stops, tokenizer), ...known, ...(end === undefined ? [] : [end])]),
  ]
}

/** Parsers by the tools on offer, which type the arguments of some formats. */
function openParsers(
  formats: ModelRenderer['formats'],
  profile: Profile,
  tokenizer: Tokenizer,
): (tools: readonly ToolDefinition[]) => OutputParser {
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
function piecesOf(ids: Int32Array, tokenizer: Tokenizer): readonly TextPiece[] {
  const controls = controlIds(tokenizer)
  const pieces: TextPiece[] = []
  let start = 0
  for (let index = 0; index <= ids.length; index++) {
    const isControl = index < ids.length && controls.has(ids[index]!)
    if (index < ids.length && !isControl) continue
    if (index > start)
      pieces.push({ text: tokenizer.decode(ids.subarray(start, index)), control: false })
    if (isControl) pieces.push({ text: tokenizer.tokenOf(ids[index]!) ?? '', control: true })
    start = index + 1
  }
  return pieces
}

const controlSets = new WeakMap<Tokenizer, ReadonlySet<number>>()

function controlIds(tokenizer: Tokenizer): ReadonlySet<number> {
  const known = controlSets.get(tokenizer) ?? new Set(tokenizer.controls.map(({ id }) => id))
  controlSets.set(tokenizer, known)
  return known
}

/** What was parsed, as a message; malformed calls stay in its content as they were written. */
function toReply(output: ParsedOutput, turn: number): Reply {
  const calls = output.calls.map((call, index) => toAttempt(call, callId(turn, index)))
  const toolCalls = calls.flatMap(call => (call.kind === 'parsed' ? [toToolCall(call)] : []))
  const content = output.parts
    .map(part => {
      if (part.kind === 'content') return part.text
      return part.kind === 'call' && part.call.kind === 'malformed' ? part.call.raw : ''
    })
    .join('')
  const message: AssistantMessage = {
    role: 'assistant',
    content: toolCalls.length > 0 ? content.trim() : content,
    ...(output.reasoning !== undefined && { reasoning_content: output.reasoning }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
  }
  return { message, calls }
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

/** Tokens for a turn that a server gave as a message: as the template writes it, closer included. */
function encodeTurn(
  { chat, profile, tokenizer }: BridgeContext,
  message: AssistantMessage,
  tools: readonly ToolDefinition[],
): Int32Array {
  const question = { role: 'user', content: 'Go on.' } as const
  const before = chat.render({ messages: [question], tools, opensTurn: true }).text
  const { text, foreign } = chat.render({ messages: [question, message], tools, opensTurn: false })
  let start = 0
  while (start < before.length && before[start] === text[start]) start++
  const end = text.length - (text.endsWith(profile.separator) ? profile.separator.length : 0)
  const turn = text.slice(start, end)
  return tokenizer.encode(turn, { foreign: shift(foreign, start) })
}
