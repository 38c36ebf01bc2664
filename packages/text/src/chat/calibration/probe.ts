import type {
  AssistantMessage,
  Message,
  ToolDefinition,
  ToolMessage,
  UserMessage,
} from '../../message.ts'

/** A word that no template writes by itself, in every text of a synthetic conversation. */
const word = 'qzprobe'

/** The last word of a synthetic turn that only speaks. */
export const contentMark = `${word}said`
/** The last argument of the call by which the end of a synthetic turn is found. */
export const argumentMark = `${word}argued`
/** What a synthetic turn thinks. */
export const thoughtMark = `${word}thought`

/** The id of the last call of a synthetic turn; nine letters and digits, as the strictest want. */
export const lastProbeId = 'qzprobe00'

/** A probing tool, offered if a template must be shown one. */
export const probeTool: ToolDefinition = {
  type: 'function',
  function: {
    name: `${word}tool`,
    description: 'A tool.',
    parameters: {
      type: 'object',
      properties: { probe: { type: 'string', description: 'A value.' } },
      required: ['probe'],
    },
  },
}

/** The question that opens a synthetic conversation. */
export const asked: UserMessage & { readonly content: string } = {
  role: 'user',
  content: `${word}query`,
}

/** What a user says next in a synthetic conversation. */
export const again: UserMessage & { readonly content: string } = {
  role: 'user',
  content: `${word}again`,
}

/** A turn that thinks and speaks. */
export const spokenTurn: AssistantMessage = {
  role: 'assistant',
  content: contentMark,
  reasoning_content: thoughtMark,
}

/** How a call is answered in a synthetic conversation: under which id, and by which tool. */
export interface ProbeCall {
  readonly id?: string
  readonly name?: string
}

/** Which part of a calling turn is written last, so that its end can be found. */
export type CallMark = 'last' | 'first' | 'content'

/** A turn that thinks and calls; the call (or the words) that `mark` says is written last is marked. */
export function callingTurn(
  calls: readonly ProbeCall[],
  mark: CallMark = 'last',
): AssistantMessage {
  const marked = mark === 'first' ? 0 : calls.length - 1
  return {
    role: 'assistant',
    content: mark === 'content' ? contentMark : '',
    reasoning_content: thoughtMark,
    tool_calls: calls.map(({ id = lastProbeId, name = probeTool.function.name }, index) => ({
      id,
      type: 'function',
      function: { name, arguments: index === marked ? markedArguments : otherArguments },
    })),
  }
}

const markedArguments = JSON.stringify({ probe: argumentMark })
const otherArguments = JSON.stringify({ probe: `${word}other` })

/** A turn without its thinking. */
export function withoutThought({
  reasoning_content: _,
  ...turn
}: AssistantMessage): AssistantMessage {
  return turn
}

/** The `index`-th of several results, counted from the last one down. */
export function probeResult(index = 0): ToolMessage & { readonly content: string } {
  return {
    role: 'tool',
    tool_call_id: `${word}0${index}`,
    name: probeTool.function.name,
    content: `${word}result${index}`,
  }
}

/** The calls that results answer. */
export function callsOf(results: readonly ToolMessage[]): readonly ProbeCall[] {
  return results.map(({ tool_call_id: id, name }) => (name === undefined ? { id } : { id, name }))
}

/** Renders synthetic conversations; a template that refuses one gives its error. */
export interface Probe {
  text(messages: readonly Message[], options?: ProbeOptions): string | Error
  /** The control strings of the vocabulary, white space left out. */
  readonly controls: readonly string[]
}

/** What a synthetic rendering is asked for. */
export interface ProbeOptions {
  /** Whether it ends where a policy continues. @default false */
  readonly opens?: boolean
  /** Whether the probing tool is offered. @default false */
  readonly tools?: boolean
}

/** What follows the first occurrence of a word. */
export function after(text: string | Error, mark: string): string | undefined {
  if (typeof text !== 'string') return undefined
  const at = text.indexOf(mark)
  return at < 0 ? undefined : text.slice(at + mark.length)
}

/** What two texts begin with. */
export function commonPrefix(a: string, b: string): string {
  let length = 0
  // Texts begin alike for thousands of characters: most of them are compared at once.
  while (length < a.length && b.startsWith(a.slice(length, length + 256), length)) length += 256
  while (length < a.length && a[length] === b[length]) length++
  return a.slice(0, length)
}

/** What two texts end with. */
export function commonSuffix(a: string, b: string): string {
  let length = 0
  while (length < a.length && a.at(-1 - length) === b.at(-1 - length)) length++
  return length === 0 ? '' : a.slice(-length)
}

/** How often a string occurs in a text. */
export function countOf(text: string, string: string): number {
  return text.split(string).length - 1
}
