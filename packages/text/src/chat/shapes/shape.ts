import type { Condition, Hole } from '../../jinja/hidden.ts'
import type { Message, ToolDefinition } from '../../message.ts'
import { type Chat, longestHidden, type TimedText } from '../chat.ts'

/** What a template made of messages without seeing their contents, and for which contents. */
export interface Shape<Form> {
  readonly conditions: readonly Condition[]
  readonly moments: TimedText['moments']
  /** Where contents are filled in. */
  readonly holes: readonly Hole[]
  /** What contents are filled into; undefined if the template has to see such contents. */
  readonly form: Form | undefined
}

/** A form, and the contents to be filled into it. */
export interface Fit<Form> {
  readonly form: Form
  readonly moments: TimedText['moments']
  readonly texts: readonly string[]
}

/** How shapes are made. */
export interface ShapeOptions<Request, Form> {
  readonly chat: Chat
  /** Whether they differ by the tools of a request. */
  readonly needsTools: boolean
  make(request: Request): Shape<Form>
}

/** Shapes by what messages are besides their contents. */
type Shapes<Form> = Map<string, Shape<Form>[]>

/** Kinds of messages kept per list of tools; then all are forgotten. */
const kindsKept = 1024
/** Shapes kept per kind: a template that asks much about contents has several. */
const shapesKept = 8

/**
 * Finds the form into which the contents of a request's messages can be filled, and makes it if
 * it is the first of its kind; undefined if a request has to be rendered by itself.
 */
export function makeShapes<Request extends { readonly tools: readonly ToolDefinition[] }, Form>(
  options: ShapeOptions<Request, Form>,
): (request: Request, messages: readonly Message[]) => Fit<Form> | undefined {
  const { chat, needsTools } = options
  const everywhere: Shapes<Form> = new Map()
  const byTools = new WeakMap<object, Shapes<Form>>()
  const shapesOf = ({ tools }: Request): Shapes<Form> => {
    if (!needsTools) return everywhere
    const shapes = byTools.get(tools) ?? new Map<string, Shape<Form>[]>()
    byTools.set(tools, shapes)
    return shapes
  }
  const add = (request: Request, shapes: Shape<Form>[]): Shape<Form> => {
    if (shapes.length >= shapesKept) shapes.shift()
    const shape = options.make(request)
    shapes.push(shape)
    return shape
  }
  return (request, messages) => {
    const kind = kindOf(messages, chat)
    if (kind === undefined) return undefined
    const texts = messages.map(({ content }) => content as string)
    const shapes = keptOf(shapesOf(request), kind)
    const fits = (shape: Shape<Form>): boolean =>
      isTrueOf(shape, texts) && chat.isNow(shape.moments)
    const { form, moments, holes } = shapes.find(fits) ?? add(request, shapes)
    // A content as the template changed it may spell a control string.
    const isSpelled = holes.some(({ read }) => {
      const filling = read(texts)
      return !texts.includes(filling) && chat.spellsControl(filling)
    })
    return form && !isSpelled ? { form, moments, texts } : undefined
  }
}

/** What messages are besides their contents; undefined if contents cannot be left out. */
function kindOf(messages: readonly Message[], chat: Chat): string | undefined {
  let kind = ''
  for (const message of messages) {
    const { role, content } = message
    if (role === 'assistant' || typeof content !== 'string') return undefined
    if (content.length > longestHidden || chat.spellsControl(content)) return undefined
    const fields = message as unknown as Readonly<Record<string, unknown>>
    for (const field in fields) {
      const value = field === 'content' ? '' : fields[field]
      if (value === undefined) continue
      if (typeof value !== 'string') return undefined
      // With both lengths no two kinds are written alike.
      kind += `${field.length},${value.length}:${field}${value}`
    }
    kind += ';'
  }
  return kind
}

function keptOf<Form>(shapes: Shapes<Form>, kind: string): Shape<Form>[] {
  const known = shapes.get(kind)
  if (known) return known
  if (shapes.size >= kindsKept) shapes.clear()
  const kept: Shape<Form>[] = []
  shapes.set(kind, kept)
  return kept
}

function isTrueOf({ conditions }: Shape<unknown>, texts: readonly string[]): boolean {
  try {
    return conditions.every(({ read, question, answer }) => question(read(texts)) === answer)
  } catch {
    // If a condition throws for these texts, rendering will throw the same, so leave it to the template.
    return false
  }
}
