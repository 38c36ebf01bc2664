import type { Message, Renderer, ToolDefinition } from '@espalier/text'
import type { Call } from '../../base/core/call.ts'
import { acrossNow } from '../../base/core/failure.ts'
import { type ImagePlace, moved } from '../../base/core/image.ts'
import { commonLength } from '../rollout/act.ts'
import { placesIn, sharedTokens } from '../rollout/images/places.ts'
import { makeTokenBuffer, type TokenBuffer } from '../rollout/token-buffer.ts'
import { type Keyed, Keys, messageKeys, tokensKey } from './message-key.ts'
import { type CapturedTurn, type Prompted, promptLength, turnLength } from './turn.ts'

/** What a request shows the policy: its messages and tools as they will be rendered. */
export interface Shown {
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  readonly toolsKey: string
}

/** The conversations of one seat, which requests are matched with. */
export interface Known {
  readonly turns: readonly CapturedTurn[]
  /** The prompt from which a request will be answered. */
  match(shown: Shown, call: Call): Prompted
  /** Adds a turn that was sampled, so that others can go on from it. */
  add(turn: CapturedTurn): void
}

/** Opens the conversations of one seat. */
export function makeKnown(renderer: Renderer): Known {
  return new KnownConversations(renderer)
}

class KnownConversations implements Known {
  readonly #renderer: Renderer
  readonly turns: CapturedTurn[] = []
  readonly #said = new Step()
  /** Turns that are not in `said` yet. */
  readonly #unread: CapturedTurn[] = []
  /** The first turn behind each prompt; most have one. */
  #byTokens: Map<string, CapturedTurn> | undefined
  /** The last request: the next one repeats most of it. */
  #last: Keyed | undefined

  constructor(renderer: Renderer) {
    this.#renderer = renderer
  }

  match(shown: Shown, call: Call): Prompted {
    const { tools, toolsKey: key } = shown
    const last = this.#last
    const keys = new Keys(() => messageKeys(shown.messages, last))
    const base = this.#findBase(keys, key)
    const messages = base ? withKnown(base, shown.messages) : shown.messages
    const asked: Asked = { messages, keys, tools, toolsKey: key }
    this.#last = asked
    const isBridged = base !== undefined && isAnswered(messages, base.messages.length + 1)
    return acrossNow('renderer', call, () =>
      isBridged
        ? bridged(this.#renderer, asked, base)
        : rendered(this.#renderer, asked, this.turns),
    )
  }

  add(turn: CapturedTurn): void {
    const twin = this.#twinOf(turn)
    const added = twin ? besideTwin(turn, twin) : turn
    this.turns.push(added)
    if (!twin && this.#byTokens) this.#byTokens.set(turn.tokensKey, added)
    this.#unread.push(added)
  }

  /** Reads the turns that came since somebody last looked for one. */
  #readTurns(): void {
    for (const turn of this.#unread.splice(0)) {
      let end = this.#said.add(turn.toolsKey)
      for (const key of turn.saidKeys.list) end = end.add(key)
      end.turn = turn
    }
  }

  /** The first turn of the same prompt. A map by tokens is made only once there are many. */
  #twinOf({ tokensKey: key }: CapturedTurn): CapturedTurn | undefined {
    if (this.#byTokens) return this.#byTokens.get(key)
    const twin = this.turns.find(each => each.tokensKey === key)
    if (this.turns.length >= few) {
      this.#byTokens = new Map(this.turns.toReversed().map(each => [each.tokensKey, each]))
    }
    return twin
  }

  /** The turn with the longest conversation that the messages begin with. */
  #findBase(keys: Keys, key: string): CapturedTurn | undefined {
    if (this.turns.length === 0) return undefined
    this.#readTurns()
    const { list } = keys
    let step = this.#said.next(key)
    let found: CapturedTurn | undefined
    for (let index = 0; step && index < list.length; index++) {
      step = step.next(list[index]!)
      found = step?.turn ?? found
    }
    return found
  }
}

/** Up to this many turns, a scan is cheaper than a map. */
const few = 8

/** Whether something stands behind the first `known` messages, and nothing of the assistant. */
function isAnswered(messages: readonly Message[], known: number): boolean {
  if (messages.length <= known) return false
  for (let index = known; index < messages.length; index++) {
    if (messages[index]!.role === 'assistant') return false
  }
  return true
}

/**
 * A node of the trie of known conversations: by their tools, then message by message. There are
 * thousands of them and most have one child, so a map is made only for the second.
 */
class Step {
  /** The newest turn whose conversation ends here. */
  turn: CapturedTurn | undefined
  #key = ''
  #only: Step | undefined
  #others: Map<string, Step> | undefined

  next(key: string): Step | undefined {
    return this.#key === key ? this.#only : this.#others?.get(key)
  }

  add(key: string): Step {
    const known = this.next(key)
    if (known) return known
    const step = new Step()
    if (this.#only) {
      this.#others ??= new Map()
      this.#others.set(key, step)
    } else {
      this.#key = key
      this.#only = step
    }
    return step
  }
}

type Asked = Pick<Prompted, 'messages' | 'keys' | 'tools' | 'toolsKey'>

/**
 * Messages that are known are kept once, however often a request brings them again. Results name
 * the calls as they were made, whatever ids a framework gave them since.
 */
function withKnown(base: CapturedTurn, messages: readonly Message[]): readonly Message[] {
  const at = base.messages.length
  const again = messages[at]
  const given = again?.role === 'assistant' ? (again.tool_calls ?? []) : []
  const made = base.message.tool_calls ?? []
  const ids = new Map(given.map(({ id }, index) => [id, made[index]?.id ?? id]))
  const observed = messages.slice(at + 1).map(message => {
    if (message.role !== 'tool') return message
    const id = ids.get(message.tool_call_id)
    return id === undefined ? message : { ...message, tool_call_id: id }
  })
  return [...base.messages, base.message, ...observed]
}

/** Another answer to a prompt that has one: the prompt is stored once. */
function besideTwin(turn: CapturedTurn, twin: CapturedTurn): CapturedTurn {
  const given = new Int32Array(0)
  return { ...turn, rewrite: undefined, base: twin, keep: promptLength(twin), given }
}

/** Goes on from exactly what was sampled, as far as the template allows. */
function bridged(renderer: Renderer, asked: Asked, base: CapturedTurn): Prompted {
  const length = turnLength(base)
  const path = base.tokens.view().subarray(0, length)
  const known = base.messages.length + 1
  const between = renderer.bridge({
    path,
    turnStart: promptLength(base),
    messages: asked.messages,
    observed: asked.messages.length - known,
    tools: asked.tools,
  })
  const depth = base.depth + 1
  const seen = (ids: Int32Array, messages: readonly Message[]) => placesIn(renderer, ids, messages)
  if (between.kind === 'extends') {
    const added = seen(between.ids, asked.messages.slice(known))
    const tokens = continued(base.tokens, length, between.ids)
    const images = [...base.images, ...added.map(image => moved(image, length))]
    return prompted(asked, { known, base, keep: length, given: between.ids, tokens, images, depth })
  }
  const tokens = continued(base.tokens, between.keep, between.ids)
  const images = seen(tokens.view(), asked.messages)
  const same = sharedTokens({ old: base.images, now: images, keep: between.keep })
  const keep = wholeTurns(base, same)
  const given = tokens.view().slice(keep)
  const { reason: rewrite } = between
  return prompted(asked, { known, base, keep, given, tokens, images, depth, rewrite })
}

/** Renders everything; what the tokens share with a known path is stored once. */
function rendered(renderer: Renderer, asked: Asked, turns: readonly CapturedTurn[]): Prompted {
  const ids = renderer.render(asked.messages, asked.tools)
  const images = placesIn(renderer, ids, asked.messages)
  const { base, keep } = longestShared(turns, { ids, images })
  // The tokens decide: a message written differently may still be the same tokens to the policy.
  const isSame = base !== undefined && keep === turnLength(base)
  return prompted(asked, {
    known: isSame ? Math.min(base.messages.length + 1, asked.messages.length) : 0,
    base,
    keep,
    given: keep === 0 ? ids : ids.slice(keep),
    tokens: makeTokenBuffer(ids),
    images,
    depth: depthOf(asked.messages),
  })
}

/** The turn behind these messages: calls that outlived a compaction have the numbers of theirs, which no other call may get. */
function depthOf(messages: readonly Message[]): number {
  const answers = messages.flatMap(message => (message.role === 'assistant' ? [message] : []))
  const calls = answers.flatMap(({ tool_calls = [] }) => tool_calls)
  const turns = calls.map(({ id = '' }) => Number(/^c(\d{5})\d{3}$/.exec(id)?.[1] ?? -1))
  return turns.reduce((depth, turn) => Math.max(depth, turn + 1), answers.length)
}

type Placed = Omit<Prompted, keyof Asked | 'tokensKey' | 'rewrite'> & { readonly rewrite?: string }

/** What was asked, with its place. Field by field, so that all have one shape, as in `openTurn`. */
function prompted({ messages, keys, tools, toolsKey }: Asked, placed: Placed): Prompted {
  const { known, base, keep, given, tokens, images, depth, rewrite } = placed
  return {
    messages,
    keys,
    known,
    tools,
    toolsKey,
    base,
    keep,
    given,
    tokens,
    images,
    tokensKey: tokensKey(tokens, images),
    depth,
    rewrite,
  }
}

/** The turn whose path begins with the most of these tokens, and how many that are. */
function longestShared(
  turns: readonly CapturedTurn[],
  { ids, images }: { readonly ids: Int32Array; readonly images: readonly ImagePlace[] },
): { readonly base: CapturedTurn | undefined; readonly keep: number } {
  let best: CapturedTurn | undefined
  let most = 0
  for (const turn of turns) {
    const path = turn.tokens.view().subarray(0, turnLength(turn))
    const common = commonLength(path, ids)
    const keep = wholeTurns(turn, sharedTokens({ old: turn.images, now: images, keep: common }))
    if (keep <= most) continue
    best = turn
    most = keep
  }
  return { base: best, keep: most }
}

/** `keep`, shortened if needed so that it cuts no sampled turn in two. */
function wholeTurns(base: CapturedTurn, keep: number): number {
  for (let turn: CapturedTurn | undefined = base; turn; turn = turn.base) {
    if (keep > promptLength(turn)) return keep < turnLength(turn) ? promptLength(turn) : keep
  }
  return keep
}

/** A path's first tokens and `ids` after them; grows the same buffer if nothing else was appended to it. */
function continued(tokens: TokenBuffer, length: number, ids: Int32Array): TokenBuffer {
  const buffer = tokens.length === length ? tokens : tokens.fork(length)
  buffer.append(ids)
  return buffer
}
