import type { Message, ToolDefinition } from '../core/message.ts'
import { parseJson } from '../python/json.ts'
import { fromJavaScript, type PythonValue } from '../python/value.ts'
import { markForeignWithin, type TemplateInput } from './jinja/foreign.ts'
import { compileTemplate, type Template } from './jinja/template.ts'
import type { ModelFiles } from './model-folder.ts'
import type { ControlToken, Tokenizer } from './tokenizer.ts'

/** A rendered text, with the ranges of it that came from messages and look like control strings. */
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

/** Renders conversations as text, as transformers renders this template. */
export interface Chat {
  render(request: ChatRequest): ChatText
  /** The template in use, patches applied. */
  readonly source: string
}

/** How a chat template is used. */
export interface ChatOptions {
  /** The template's source, patches applied. */
  readonly template: string
  readonly toolTemplate?: string
  readonly tokenizer: Tokenizer
  readonly config: ModelFiles['config']
  /** Values the template may ask for, such as `enable_thinking`. */
  readonly variables: Readonly<Record<string, unknown>>
  /** The day a template is told it is. */
  readonly clock: () => Date
}

const tokenNames = [
  'bos_token',
  'eos_token',
  'unk_token',
  'sep_token',
  'pad_token',
  'cls_token',
  'mask_token',
]

/** Opens a chat template for rendering. */
export function openChat(options: ChatOptions): Chat {
  const { tokenizer, config, variables, clock } = options
  const plain = compileTemplate(options.template)
  const withTools =
    options.toolTemplate === undefined ? plain : compileTemplate(options.toolTemplate)
  const constants = new Map<string, PythonValue>()
  for (const name of tokenNames) {
    const token = tokenText(config[name])
    if (token !== undefined) constants.set(name, token)
  }
  for (const [name, value] of Object.entries(variables)) constants.set(name, fromJavaScript(value))
  const toInput = openInputs(tokenizer.controls)

  return {
    source: options.template,
    render({ messages, tools, opensTurn }) {
      const template: Template = tools.length > 0 ? withTools : plain
      const rendering = template.render(
        new Map<string, TemplateInput>([
          ...constants,
          ['messages', messages.map(toInput.message)],
          ['tools', tools.length > 0 ? toInput.tools(tools) : null],
          ['documents', null],
          ['add_generation_prompt', opensTurn],
        ]),
        { clock },
      )
      return { text: rendering.text, foreign: rendering.foreign }
    },
  }
}

/** A special token as `tokenizer_config.json` has it: its text, or an object with its text. */
function tokenText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  const content = (value as { content?: unknown } | null | undefined)?.content
  return typeof content === 'string' ? content : undefined
}

/**
 * Turns messages and tools into template values. Text that spells a control string is marked, so
 * that it stays text (T6); of the policy's own words only the special tokens are.
 */
function openInputs(controls: readonly ControlToken[]) {
  const spellsAny = containsOneOf(controls.map(({ content }) => content))
  const spellsSpecial = containsOneOf(
    controls.filter(({ special }) => special).map(({ content }) => content),
  )
  const known = new WeakMap<object, TemplateInput>()

  const remember = (key: object, make: () => TemplateInput): TemplateInput => {
    const found = known.get(key)
    if (found !== undefined) return found
    const made = make()
    known.set(key, made)
    return made
  }
  return {
    message: (message: Message): TemplateInput =>
      remember(message, () => {
        const isMarked = message.role === 'assistant' ? spellsSpecial : spellsAny
        return markForeignWithin(toValue(message), isMarked)
      }),
    tools: (tools: readonly ToolDefinition[]): TemplateInput =>
      remember(tools, () => markForeignWithin(fromJavaScript(tools), spellsAny)),
  }
}

/** Whether a text contains one of these words; words are found by their first character. */
function containsOneOf(words: readonly string[]): (text: string) => boolean {
  const firsts = [...new Set(words.map(word => word[0]!))]
  return text =>
    firsts.some(first => text.includes(first)) && words.some(word => text.includes(word))
}

/** A message as templates expect it: arguments as a dict, no `None` where text belongs. */
function toValue(message: Message): PythonValue {
  if (message.role !== 'assistant') return fromJavaScript(message)
  const { tool_calls: calls, content, ...rest } = message
  const value = fromJavaScript({ ...rest, content: content ?? '' }) as Map<string, PythonValue>
  if (calls && calls.length > 0) {
    value.set(
      'tool_calls',
      calls.map(call => {
        const entry = fromJavaScript(call) as Map<string, PythonValue>
        const inner = entry.get('function') as Map<string, PythonValue>
        inner.set('arguments', readArguments(call.function.arguments))
        return entry
      }),
    )
  }
  return value
}

/** Arguments as a dict; text that is not JSON stays text, which templates print as it is. */
function readArguments(text: string): PythonValue {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}
