import type { Message } from '../core/message.ts'
import type { BridgeRequest } from '../core/renderer.ts'
import {
  anchorOf,
  type BridgeContext,
  bridgeIds,
  encodeBehindText,
  endOf,
  observedOf,
  withoutSampled,
} from './bridge.ts'
import { type Chat, type HollowText, longestHidden } from './chat.ts'
import type { Ending } from './ending.ts'
import { type HoleEncoder, openHoleEncoder } from './hole-encoder.ts'
import { type Guard, moveHole, type Reader, readerOf } from './jinja/hidden.ts'

/** The text of a bridge with holes where contents belong, and about which contents that is true. */
interface Shape {
  readonly guards: readonly Guard[]
  /** Undefined where the template has to see such contents. */
  readonly bridge: ShapedBridge | undefined
}

interface ShapedBridge {
  readonly moments: HollowText['moments']
  readonly ending: Ending
  readonly read: Reader
  readonly encode: HoleEncoder
}

/** Shapes by what a request is besides the contents it observed. */
type Shapes = Map<string, Shape[]>

/** Kinds of requests kept per list of tools; then all are forgotten. */
const kindsKept = 1024
/** Shapes kept per kind: a template that asks much about contents has several. */
const shapesKept = 8

/**
 * Computes bridges. Those of one kind (the same roles, tools and calls) differ by the observed
 * contents only, so the template renders one of them, without seeing the contents, and the others
 * are filled in. They are what `bridgeIds` gives, token by token.
 */
export function openBridges(context: BridgeContext): (request: BridgeRequest) => Int32Array {
  const { history, tools: needsTools } = context.profile.bridgeNeeds
  if (history) return request => bridgeIds(context, request)
  const everywhere: Shapes = new Map()
  const byTools = new WeakMap<object, Shapes>()
  const shapesOf = ({ tools }: BridgeRequest): Shapes => {
    if (!needsTools) return everywhere
    const shapes = byTools.get(tools) ?? new Map()
    byTools.set(tools, shapes)
    return shapes
  }
  return request => {
    const observed = observedOf(request)
    const kind = kindOf(observed, context.chat)
    if (kind === undefined) return bridgeIds(context, request)
    const texts = observed.map(({ content }) => content as string)
    const shapes = keptOf(shapesOf(request), kind)
    const shape = findShape(context.chat, shapes, texts) ?? addShape(context, request, shapes)
    return shape.bridge
      ? fill(context, request, { bridge: shape.bridge, texts })
      : bridgeIds(context, request)
  }
}

/** What messages are besides their contents; undefined where contents cannot be left out. */
function kindOf(messages: readonly Message[], chat: Chat): string | undefined {
  let kind = ''
  for (const message of messages) {
    const { role, content } = message
    if (role === 'assistant' || typeof content !== 'string') return undefined
    if (content.length > longestHidden || chat.isMarked(content)) return undefined
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

function keptOf(shapes: Shapes, kind: string): Shape[] {
  const known = shapes.get(kind)
  if (known) return known
  if (shapes.size >= kindsKept) shapes.clear()
  const kept: Shape[] = []
  shapes.set(kind, kept)
  return kept
}

function findShape(
  chat: Chat,
  shapes: readonly Shape[],
  texts: readonly string[],
): Shape | undefined {
  for (const shape of shapes) {
    if (shape.guards.every(guard => isTrueOf(guard, texts))) {
      if (!shape.bridge || chat.isNow(shape.bridge.moments)) return shape
    }
  }
  return undefined
}

function isTrueOf({ read, question, answer }: Guard, texts: readonly string[]): boolean {
  try {
    return question(read(texts)) === answer
  } catch {
    // What raises for these texts is for the template to raise.
    return false
  }
}

function addShape(context: BridgeContext, request: BridgeRequest, shapes: Shape[]): Shape {
  if (shapes.length >= shapesKept) shapes.shift()
  const shape = makeShape(context, request)
  shapes.push(shape)
  return shape
}

function makeShape({ chat, profile, tokenizer }: BridgeContext, request: BridgeRequest): Shape {
  const observed = observedOf(request)
  const anchor = anchorOf(profile, observed, request)
  const tools = profile.bridgeNeeds.tools ? request.tools : []
  const messages = [...anchor.before, ...observed]
  const { guards, hollow } = chat.renderHollow(
    { messages, tools, opensTurn: true },
    observed.length,
  )
  if (!hollow) return { guards, bridge: undefined }
  const start = endOf(hollow.text, hollow.text.indexOf(anchor.mark), anchor)
  // Before the first hole the text is the same for all, and so is the first mark if it is there.
  const isTold = start !== undefined && hollow.holes.every(({ at }) => at >= start)
  if (!isTold || hollow.foreign.some(([, end]) => end > start)) return { guards, bridge: undefined }
  const text = hollow.text.slice(start)
  const holes = hollow.holes.map(hole => moveHole(hole, -start))
  const { moments } = hollow
  const { ending } = anchor
  const encode = openHoleEncoder(tokenizer, { text, holes })
  return { guards, bridge: { moments, ending, read: readerOf(text, holes), encode } }
}

function fill(
  context: BridgeContext,
  request: BridgeRequest,
  { bridge, texts }: { readonly bridge: ShapedBridge; readonly texts: readonly string[] },
): Int32Array {
  const { ending, read, encode } = bridge
  if (ending.stop === '') {
    return encodeBehindText(context, request, { text: read(texts), foreign: [] })
  }
  return withoutSampled(context, request, { ids: encode(texts), ending })
}
