import { type ImageProcessor, imageProcessor } from '../images/index.ts'
import type { AssistantMessage, ToolDefinition } from '../message.ts'
import {
  detectFormats,
  type Markers,
  openParser,
  type ReasoningFormat,
  reasoningFormats,
  type ToolFormat,
  toolFormats,
} from '../parsers/parser.ts'
import type { BridgeRequest, History, Renderer, RendererImages } from '../renderer.ts'
import { holdLoop } from '../signals/index.ts'
import { openTokenizer, type Tokenizer } from '../tokenizers/tokenizer.ts'
import { type BridgeContext, bridgeIds, concat } from './bridge.ts'
import { calibrate, type Profile } from './calibration/calibration.ts'
import { findDialect } from './calibration/dialect.ts'
import { snap } from './calibration/ending.ts'
import { commonPrefix } from './calibration/probe.ts'
import { type Chat, compileChat, type TimedText } from './chat.ts'
import { faithfulBridge } from './history.ts'
import { withImages } from './images/expand.ts'
import { rendererImages } from './images/locate.ts'
import type { ModelFiles } from './model-folder.ts'
import { patchTemplate, type TemplatePatch } from './patches.ts'
import { shift } from './ranges.ts'
import { type Formats, makeReplies } from './reply.ts'
import { makeBridges } from './shapes/bridge-shape.ts'
import { makeOpenings } from './shapes/openings.ts'
import { replaceToolInstruction, type ToolInstruction } from './tool-instruction.ts'
import { makeTurnReaders } from './turn-reader.ts'

/** How a model folder is used. */
export interface RendererOptions {
  /** @default 'preserve' */
  readonly history?: History
  /** Values the chat template may ask for, such as `enable_thinking`. */
  readonly templateVariables?: Readonly<Record<string, unknown>>
  /** Replaces the sentence in which the template offers tools. */
  readonly toolInstruction?: ToolInstruction
  /** How the model writes calls. @default found from the template */
  readonly toolFormat?: ToolFormat
  /** How the model writes reasoning. @default found from the template */
  readonly reasoningFormat?: ReasoningFormat
  /**
   * Whether a marker that the model spells out in ordinary tokens counts as one, as it does for
   * servers that parse text, or only the control token itself. @default 'text'
   */
  readonly markers?: Markers
  /**
   * Whether contexts and bridges of one kind are filled into a shape that the template rendered once.
   * `false`: the template renders each one; slower, with the same tokens, for debugging. @default true
   */
  readonly shapes?: boolean
  /** Whether known defects of published templates are mended. @default true */
  readonly patch?: boolean
  /** Strings to treat as control tokens though the tokenizer does not name them. */
  readonly extraSpecialTokens?: readonly string[]
  /** A tokenizer that is already open, so that a folder's own need not be opened. */
  readonly tokenizer?: Tokenizer
  /** The date that templates write. */
  readonly clock: () => Date
}

/**
 * A renderer made from a model folder, with what was found out about it. The ids that `render` gives
 * are shared by all who render the same context: nobody may write to them.
 */
export interface ModelRenderer extends Renderer {
  readonly tokenizer: Tokenizer
  readonly profile: Profile
  readonly chat: Chat
  readonly formats: Formats
  readonly patches: readonly TemplatePatch[]
  /** A renderer of this model that treats what the template rewrites in another way. */
  withHistory(history: History): ModelRenderer
}

/** Opens the border between messages and tokens for a model folder; its template is probed once. */
export function createRenderer(files: ModelFiles, options: RendererOptions): ModelRenderer {
  const { history = 'preserve', markers = 'text', clock } = options
  const { templateVariables: variables = {} } = options
  // Taken out here: what a function below names of the files keeps all of them, and they are millions of bytes.
  const { name } = files
  // Probing renders many times, and a vocabulary may be large.
  holdLoop()
  const tokenizer =
    options.tokenizer ??
    openTokenizer({
      tokenizer: files.tokenizer,
      config: files.config,
      extraSpecialTokens: options.extraSpecialTokens ?? [],
    })
  const { patches, ...templates } = prepareTemplates(files, options)
  const compiled = compileChat({ ...templates, tokenizer, config: files.config, variables, clock })
  const dialect = findDialect(compiled)
  const { processor, images, noImages } = seeingOf(files, tokenizer)
  const plain = compiled(dialect)
  const chat = processor ? withImages(plain, processor, dialect.parts) : plain
  const formats = formatsOf(templates.toolTemplate ?? templates.template, tokenizer, options)
  const endsInThinking = readsThinking(formats.reasoning)
  const profile = calibrate(chat, { controls: tokenizer.controls, endsInThinking })
  const stopIds = stopIdsOf(profile, files, tokenizer)
  const context: BridgeContext = { chat, profile, tokenizer, stopIds }
  const { render, bridge } = options.shapes === false ? makePlain(context) : makeShaped(context)
  const reading = { formats, profile, tokenizer, stopIds, markers }
  const parse = makeReplies(reading)
  const openTurn = makeTurnReaders(reading)
  const encodeReply = makeTurnEncoder(context)

  const withHistory = (chosen: History): ModelRenderer => ({
    name,
    history: chosen,
    stopIds,
    vocabulary: tokenizer.size,
    ...(images ? { images } : { noImages }),
    tokenizer,
    profile,
    chat,
    formats,
    patches,
    render,
    bridge: request =>
      chosen === 'faithful'
        ? faithfulBridge(context, request)
        : { kind: 'extends', ids: bridge(request) },
    parse,
    openTurn,
    encodeReply,
    decode: ids => tokenizer.decode(ids),
    withHistory,
  })
  return withHistory(history)
}

interface Seeing {
  readonly processor?: ImageProcessor
  readonly images?: RendererImages
  readonly noImages?: string
}

/** How a model sees images, or why it sees none: such a model still reads text. */
function seeingOf({ name, images }: ModelFiles, tokenizer: Tokenizer): Seeing {
  if (!images)
    return { noImages: `${name} has no preprocessor_config.json: its model reads text only` }
  try {
    const processor = imageProcessor(images)
    return { processor, images: rendererImages(processor, tokenizer) }
  } catch (cause) {
    return { noImages: `${name}: ${(cause as Error).message}` }
  }
}

/** The two ways from messages to tokens. */
interface Writing {
  readonly render: Renderer['render']
  readonly bridge: (request: BridgeRequest) => Int32Array
}

/** Renders every context and every bridge with the template; shapes must give the same tokens. */
function makePlain(context: BridgeContext): Writing {
  const { chat, tokenizer } = context
  return {
    render(messages, tools) {
      const { text, foreign } = chat.render({ messages, tools, opensTurn: true })
      return tokenizer.encode(text, { foreign })
    },
    bridge: request => bridgeIds(context, request),
  }
}

function makeShaped(context: BridgeContext): Writing {
  return { render: makeOpenings(context.chat, context.tokenizer), bridge: makeBridges(context) }
}

/** The templates of a folder, patched and with the tool instruction replaced. */
function prepareTemplates(
  { template, toolTemplate }: ModelFiles,
  { patch = true, toolInstruction }: RendererOptions,
): { template: string; toolTemplate?: string; patches: readonly TemplatePatch[] } {
  const patches: TemplatePatch[] = []
  const mend = (source: string): string => {
    if (!patch) return source
    const patched = patchTemplate(source)
    patches.push(...patched.applied.filter(each => !patches.includes(each)))
    return patched.source
  }
  const reword = (source: string): string =>
    toolInstruction ? replaceToolInstruction(source, toolInstruction) : source
  const prepared =
    toolTemplate === undefined
      ? { template: reword(mend(template)) }
      : { template: mend(template), toolTemplate: reword(mend(toolTemplate)) }
  return { ...prepared, patches }
}

function formatsOf(template: string, tokenizer: Tokenizer, options: RendererOptions): Formats {
  const { toolFormat, reasoningFormat } = options
  if (toolFormat !== undefined) checkFormat('tool', toolFormat, toolFormats)
  if (reasoningFormat !== undefined) checkFormat('reasoning', reasoningFormat, reasoningFormats)
  const controls = tokenizer.controls.map(({ content }) => content)
  const detected = detectFormats(template, controls)
  return {
    tools: toolFormat ?? detected.tools,
    reasoning: reasoningFormat ?? detected.reasoning,
  }
}

function checkFormat(kind: string, name: string, known: readonly string[]): void {
  if (known.includes(name)) return
  throw new Error(`no ${kind} format called "${name}". Known: ${known.join(', ')}.`)
}

/** Whether what follows a text would be thinking, as the reasoning format reads it. */
function readsThinking(reasoning: ReasoningFormat | undefined): (text: string) => boolean {
  if (reasoning === undefined) return () => false
  const parser = openParser({ tools: undefined, reasoning, schemas: [], opensInReasoning: false })
  return text => parser.parse(`${text}onward`).reasoning?.includes('onward') === true
}

/** Where samples stop: what the template ends turns with, and what the folder calls an end. */
function stopIdsOf(profile: Profile, files: ModelFiles, tokenizer: Tokenizer): readonly number[] {
  const named = files.config.eos_token
  const end =
    typeof named === 'string' ? named : (named as { content?: string } | null | undefined)?.content
  const ids = [...profile.stops, ...(end === undefined ? [] : [end])].map(stop =>
    tokenizer.idOf(stop),
  )
  const known = files.endIds.filter(id => id < tokenizer.size)
  return [...new Set([...ids.filter(id => id !== undefined), ...known])]
}

const question = { role: 'user', content: 'Go on.' } as const

/** Encodes turns that a server gave as messages: as the template writes them, stop included. */
function makeTurnEncoder(context: BridgeContext): Renderer['encodeReply'] {
  const { chat } = context
  const openings = new WeakMap<readonly ToolDefinition[], TimedText>()
  const openingOf = (tools: readonly ToolDefinition[]): string => {
    const known = openings.get(tools)
    if (known && chat.isNow(known.moments)) return known.text
    const opening = chat.render({ messages: [question], tools, opensTurn: true })
    openings.set(tools, opening)
    return opening.text
  }
  return (message, tools) => encodeTurn(context, { message, tools, before: openingOf(tools) })
}

interface SaidTurn {
  readonly message: AssistantMessage
  readonly tools: readonly ToolDefinition[]
  /** What stands before the turn. */
  readonly before: string
}

function encodeTurn(
  { chat, profile, tokenizer }: BridgeContext,
  { message, tools, before }: SaidTurn,
): Int32Array {
  const { text, foreign } = chat.render({ messages: [question, message], tools, opensTurn: false })
  const controls = tokenizer.controls.map(({ content }) => content)
  const shared = commonPrefix(before, text).length
  const start = Math.min(snap(before, shared, controls), snap(text, shared, controls))
  const ending = (message.tool_calls ?? []).length > 0 ? profile.called : profile.spoken
  const stop = ending?.sampledStop ?? ''
  const at = stop === '' ? -1 : text.lastIndexOf(stop)
  const turn = text.slice(start, at < start ? text.length : at + stop.length)
  const ids = tokenizer.encode(turn, { foreign: shift(foreign, start, turn.length) })
  // A prompt that opened a thinking block must have it closed, though the template shows none.
  const isOpen = profile.opensThinking && start < before.length
  if (!isOpen || profile.thinking === undefined) return ids
  return concat(tokenizer.encode(profile.thinking.end), ids)
}
