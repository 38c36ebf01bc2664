import { type ForeignRanges, markForeignWithin, type TemplateInput } from '../jinja/foreign.ts'
import { type Condition, HiddenContents, type Hole } from '../jinja/hidden.ts'
import type { Moment } from '../jinja/run.ts'
import { compileTemplate, type Rendering } from '../jinja/template.ts'
import {
  type Content,
  type ContentPart,
  type Message,
  type ToolCall,
  type ToolDefinition,
  textOf,
} from '../message.ts'
import { parseJson } from '../python/json.ts'
import { formatTime, localTime } from '../python/strftime.ts'
import { fromJavaScript, type PythonValue } from '../python/value.ts'
import { holdLoop } from '../signals/index.ts'
import { makeControlMatcher } from '../tokenizers/control-matcher.ts'
import { isWhiteSpace, tokenRoles } from '../tokenizers/controls.ts'
import type { ControlToken, Tokenizer } from '../tokenizers/tokenizer.ts'
import type { Dialect } from './calibration/dialect.ts'
import type { ModelFiles } from './model-folder.ts'

/** A rendered text, with the ranges of it that came from messages. */
export interface ChatText {
  readonly text: string
  readonly foreign: readonly (readonly [number, number])[]
}

/** What one rendering is asked for. */
export interface ChatRequest {
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  /** Whether the text ends where the policy continues. */
  readonly opensTurn: boolean
}

/** A rendered text, and the dates and times that the template wrote into it. */
export interface TimedText extends ChatText {
  readonly moments: readonly Moment[]
}

/** A text with holes for contents that were hidden from the template. */
export interface OutlineText extends TimedText {
  readonly holes: readonly Hole[]
}

/** The result of rendering with some contents hidden; it holds for contents that meet the conditions. */
export interface OutlineRendering {
  readonly conditions: readonly Condition[]
  /** The text for such contents if none contains a control string; undefined if the template must see them. */
  readonly outline: OutlineText | undefined
}

/** Renders conversations as text, as transformers renders this template. */
export interface Chat {
  render(request: ChatRequest): TimedText
  /**
   * Renders with the contents of the last `hidden` messages hidden, which must be texts of at most
   * `longestHidden` units.
   */
  renderOutline(request: ChatRequest, hidden: number): OutlineRendering
  /** Whether a text spells a control string. */
  spellsControl(text: string): boolean
  /** Whether a template would still write the same time. */
  isNow(moments: readonly Moment[]): boolean
  /** The template in use, patches applied. */
  readonly source: string
}

/** Longer contents are not hidden: for them rendering is the smaller part of the cost. */
export const longestHidden = 1 << 14

/**
 * Under these limits the longest contents keep within the usual ones: eight characters of hidden
 * text cost at least one step wherever they are written.
 */
const outlineLimits = { steps: 1_000_000, characters: 4_000_000 }

/** How a chat template is used. */
export interface ChatOptions {
  /** The template's source, patches applied. */
  readonly template: string
  readonly toolTemplate?: string
  readonly tokenizer: Tokenizer
  readonly config: ModelFiles['config']
  /** Values the template may ask for, such as `enable_thinking`. */
  readonly variables: Readonly<Record<string, unknown>>
  /** The date that templates write. */
  readonly clock: () => Date
}

/** From this many characters on, tokenizing may hold the event loop for long. */
const longText = 500_000

/** What a rendering is given besides the variables that a user may choose. */
const givenNames = ['messages', 'tools', 'documents', 'add_generation_prompt']

/** Compiles a chat template; what it gives renders messages in the shape of a dialect. */
export function compileChat(options: ChatOptions): (dialect: Dialect) => Chat {
  const { tokenizer, clock } = options
  const plain = compileTemplate(options.template)
  const withTools =
    options.toolTemplate === undefined ? plain : compileTemplate(options.toolTemplate)
  const constants = constantsOf(options)
  return dialect => {
    const toInput = makeInputs(tokenizer.controls, dialect)
    const renderInputs = (
      { tools, opensTurn }: ChatRequest,
      messages: readonly TemplateInput[],
      limits?: typeof outlineLimits,
    ): Rendering => {
      const variables = new Map<string, TemplateInput>(constants)
      variables.set('messages', messages)
      variables.set('tools', tools.length > 0 ? toInput.tools(tools) : null)
      variables.set('documents', null)
      variables.set('add_generation_prompt', opensTurn)
      const template = tools.length > 0 ? withTools : plain
      const rendering = template.render(variables, {
        clock,
        onLong: holdLoop,
        ...(limits && { limits }),
      })
      if (rendering.text.length > longText) holdLoop()
      return rendering
    }
    return {
      source: options.template,
      render: request => renderInputs(request, request.messages.map(toInput.message)),
      renderOutline(request, hidden) {
        const { messages } = request
        const first = messages.length - hidden
        const contents = new HiddenContents(
          messages.slice(first).map(({ content }) => content as string),
        )
        const inputs = messages.map((message, index) =>
          index < first
            ? toInput.message(message)
            : toInput.outline(message, contents.hide(index - first, longestHidden)),
        )
        const { conditions } = contents
        try {
          const rendering = renderInputs(request, inputs, outlineLimits)
          return { conditions, outline: contents.isUnseen ? rendering : undefined }
        } catch {
          // If the template refuses the conversation itself, rendering it as it is will say so.
          return { conditions, outline: undefined }
        } finally {
          contents.close()
        }
      },
      spellsControl: toInput.spellsControl,
      isNow: moments =>
        moments.every(({ format, written }) => formatTime(format, localTime(clock())) === written),
    }
  }
}

function constantsOf({ config, variables }: ChatOptions): ReadonlyMap<string, PythonValue> {
  const constants = new Map<string, PythonValue>()
  const named = Object.entries(config.extra_special_tokens ?? {})
  for (const [name, value] of [
    ...tokenRoles.map(name => [name, config[name]] as const),
    ...named,
  ]) {
    const token = tokenText(value)
    if (token !== undefined) constants.set(name, token)
  }
  for (const [name, value] of Object.entries(variables)) {
    if (givenNames.includes(name)) {
      throw new Error(
        `the template variable "${name}" comes from the conversation and cannot be set`,
      )
    }
    constants.set(name, fromJavaScript(value))
  }
  return constants
}

/** A special token as `tokenizer_config.json` has it: its text, or an object with its text. */
function tokenText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  const content = (value as { content?: unknown } | null | undefined)?.content
  return typeof content === 'string' ? content : undefined
}

/** Roles and types of parts; templates build control strings from them. */
const shapeWords = new Set(
  'system user assistant tool developer function text image image_url video audio'.split(' '),
)

const isShape = (text: string, key: unknown): boolean =>
  (key === 'role' || key === 'type') && shapeWords.has(text)

/**
 * Turns messages and tools into template values. Every character of them is marked, so that none
 * takes part in a control string wherever the template puts it (T6). The policy's own words keep the
 * control strings that are not special, such as those around its calls and thoughts.
 */
function makeInputs(controls: readonly ControlToken[], dialect: Dialect) {
  // Some vocabularies have runs of white space among their added tokens: these are plain text.
  const telling = controls.filter(control => !isWhiteSpace(control))
  const spellsAny = containsOneOf(telling.map(({ content }) => content))
  const all: ForeignRanges = (text, key) =>
    text === '' || isShape(text, key) ? [] : [0, text.length]
  const own = ownRanges(telling)
  const known = new WeakMap<object, TemplateInput>()

  const remember = (key: object, make: () => TemplateInput): TemplateInput => {
    const found = known.get(key)
    if (found !== undefined) return found
    const made = make()
    known.set(key, made)
    return made
  }
  return {
    spellsControl: spellsAny,
    /** A message whose content is hidden. */
    outline: (message: Message, content: TemplateInput): TemplateInput => {
      const value = markForeignWithin(toValue({ ...message, content: '' }, dialect), all)
      return (value as Map<string, TemplateInput>).set('content', content)
    },
    message: (message: Message): TemplateInput =>
      remember(message, () => {
        const rangesOf: ForeignRanges =
          message.role === 'assistant' ? (text, key) => (isShape(text, key) ? [] : own(text)) : all
        return markForeignWithin(toValue(message, dialect), rangesOf)
      }),
    tools: (tools: readonly ToolDefinition[]): TemplateInput =>
      remember(tools, () => markForeignWithin(fromJavaScript(tools), all)),
  }
}

/** All of a text but the control strings in it that are not special and touch no special one. */
function ownRanges(controls: readonly ControlToken[]): (text: string) => readonly number[] {
  const plain = controls.filter(({ special }) => !special)
  const spellsPlain = containsOneOf(plain.map(({ content }) => content))
  const match = makeControlMatcher(controls.map(control => [control.content, control]))
  return text => {
    if (text === '') return []
    if (!spellsPlain(text)) return [0, text.length]
    return match({ text }).flatMap(({ start, end, control }) =>
      control?.special === false ? [] : [start, end],
    )
  }
}

/** Whether a text contains one of these words; words are found by their first character. */
function containsOneOf(words: readonly string[]): (text: string) => boolean {
  const firsts = [...new Set(words.map(word => word[0]!))]
  return text =>
    firsts.some(first => text.includes(first)) && words.some(word => text.includes(word))
}

/** A message in the shape that its template expects. */
function toValue(message: Message, dialect: Dialect): PythonValue {
  const content = toContent(message.content, dialect)
  if (message.role !== 'assistant') return fromJavaScript({ ...message, content })
  const { tool_calls: calls = [], reasoning_content: reasoning, ...rest } = message
  const isEmpty = content === '' && calls.length > 0 && dialect.emptyContent === 'none'
  const isJoined = dialect.thoughts === 'joined' && calls.length > 0 && reasoning && content !== ''
  const value = fromJavaScript({
    ...rest,
    content: isEmpty ? null : content,
    ...(reasoning !== undefined && { [dialect.reasoning]: reasoning }),
    ...(isJoined && {
      content: `${reasoning}\n\n${textOf(message.content)}`,
      [dialect.reasoning]: '',
    }),
  }) as Map<string, PythonValue>
  if (calls.length > 0) {
    value.set(
      'tool_calls',
      calls.map(call => toCall(call, dialect)),
    )
  }
  return value
}

/** Content as text, or in parts if the template takes them; never `None` where text is expected. */
function toContent(
  content: Content | null,
  dialect: Dialect,
): string | readonly { readonly type: string }[] {
  if (content === null || typeof content === 'string') return content ?? ''
  if (dialect.parts === 'list') return content.map(toPart)
  const image = content.find(part => part.type !== 'text')
  if (image) throw new Error(`the chat template takes text only, and got a part of ${image.type}`)
  return textOf(content)
}

/** Templates ask whether a part is an image; what the image is, tells its tokens. */
function toPart(part: ContentPart): ContentPart | { readonly type: 'image' } {
  return part.type === 'text' ? part : { type: 'image' }
}

function toCall(call: ToolCall, dialect: Dialect): PythonValue {
  const entry = fromJavaScript(call) as Map<string, PythonValue>
  // Messages of data sets may have arguments as a dict already, as transformers takes them.
  if (dialect.arguments === 'dict' && typeof call.function.arguments === 'string') {
    const inner = entry.get('function') as Map<string, PythonValue>
    inner.set('arguments', readArguments(call.function.arguments))
  }
  return entry
}

/** Arguments as a dict; text that is not JSON stays text, which templates print as it is. */
function readArguments(text: string): PythonValue {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}
