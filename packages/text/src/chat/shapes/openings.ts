import type { Message, ToolDefinition } from '../../message.ts'
import type { Tokenizer } from '../../tokenizers/tokenizer.ts'
import type { Chat, ChatRequest, TimedText } from '../chat.ts'
import { type HoleEncoder, makeHoleEncoder } from './hole-encoder.ts'
import { mixText } from './recent-ids.ts'
import { makeShapes } from './shape.ts'

/** The tokens of a context, and the dates and times that the template wrote into it. */
interface Encoded {
  readonly ids: Int32Array
  readonly moments: TimedText['moments']
}

/** A context that was rendered, with all that its tokens depend on. */
interface Opening extends Encoded {
  readonly fingerprint: number
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
}

const openingsKept = 64
const tokensKept = 1 << 19

/**
 * Renders contexts. The attempts of a group all begin with the same one, so the last ones are kept;
 * the ids are shared by all who asked for them and must not be written to.
 */
export function makeOpenings(
  chat: Chat,
  tokenizer: Tokenizer,
): (messages: readonly Message[], tools: readonly ToolDefinition[]) => Int32Array {
  const encode = makeEncoding(chat, tokenizer)
  const kept: Opening[] = []
  let tokens = 0

  const keep = (opening: Opening): void => {
    kept.push(opening)
    tokens += opening.ids.length
    while (kept.length > openingsKept || tokens > tokensKept) tokens -= kept.shift()!.ids.length
  }
  return (messages, tools) => {
    const fingerprint = fingerprintOf(messages)
    const known = kept.find(
      opening =>
        opening.fingerprint === fingerprint &&
        isSame(opening.messages, messages) &&
        isSame(opening.tools, tools) &&
        chat.isNow(opening.moments),
    )
    if (known) return known.ids
    const { ids, moments } = encode({ messages, tools, opensTurn: true })
    // Lists grow while an attempt goes on; the messages in them stay as they are.
    keep({ fingerprint, messages: [...messages], tools: [...tools], moments, ids })
    return ids
  }
}

/** Encodes contexts; of those that differ by their contents only, the template renders one. */
function makeEncoding(chat: Chat, tokenizer: Tokenizer): (request: ChatRequest) => Encoded {
  const fitOf = makeShapes<ChatRequest, HoleEncoder>({
    chat,
    needsTools: true,
    make(request) {
      const { conditions, outline } = chat.renderOutline(request, request.messages.length)
      const form = outline && makeHoleEncoder(tokenizer, outline)
      return { conditions, moments: outline?.moments ?? [], holes: outline?.holes ?? [], form }
    },
  })
  return request => {
    const fit = fitOf(request, request.messages)
    if (fit) return { ids: fit.form(fit.texts), moments: fit.moments }
    const { text, foreign, moments } = chat.render(request)
    return { ids: tokenizer.encode(text, { foreign }), moments }
  }
}

/** A number that equal messages share and others hardly ever do. */
function fingerprintOf(messages: readonly Message[]): number {
  let mixed = messages.length
  for (const { content } of messages) {
    if (typeof content === 'string') mixed = mixText(mixed, content)
  }
  return mixed
}

/** Whether two pieces of plain data are the same, members in the same order. */
function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true
  if (typeof one !== 'object' || typeof other !== 'object' || !one || !other) return false
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, index) => isSame(item, other[index]))
  }
  if (!isRecord(one) || !isRecord(other)) return false
  const names = Object.keys(one)
  const others = Object.keys(other)
  return (
    names.length === others.length &&
    names.every((name, index) => name === others[index] && isSame(one[name], other[name]))
  )
}

function isRecord(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
