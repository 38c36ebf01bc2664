import { type Message, textOf } from '../message.ts'
import type { Bridge, BridgeRequest } from '../renderer.ts'
import type { Tokenizer } from '../tokenizers/tokenizer.ts'
import type { BridgeContext } from './bridge.ts'
import type { ChatText } from './chat.ts'
import { completeCalls } from './complete-calls.ts'

/**
 * The bridge of a history kept as the template would write it now: if that differs from what
 * the policy saw and sampled, a new path begins at the first token that changed.
 */
export function faithfulBridge(context: BridgeContext, request: BridgeRequest): Bridge {
  const { tokenizer } = context
  const { path } = request
  const { text, foreign } = renderAll(context, request)
  const now = tokenizer.encode(text, { foreign })
  const { keep, same } = findFork(tokenizer, path, now)
  const ids = now.subarray(same)
  if (keep === path.length) return { kind: 'extends', ids }
  const was = tokenizer.decode(path.subarray(keep))
  const becomes = tokenizer.decode(ids)
  return { kind: 'rewrites', keep, ids, reason: causeOf(request, was, becomes) }
}

/** The conversation as a chat endpoint would render it; results without a call get one if need be. */
function renderAll({ chat }: BridgeContext, { messages, tools }: BridgeRequest): ChatText {
  try {
    return chat.render({ messages, tools, opensTurn: true })
  } catch (error) {
    const complete = completeCalls(messages)
    if (complete.every((message, index) => message === messages[index])) throw error
    return chat.render({ messages: complete, tools, opensTurn: true })
  }
}

/** Where the texts of two token sequences part. */
interface Fork {
  /** How many tokens of the path say what the template says now. */
  readonly keep: number
  /** How many tokens of the new rendering say it. */
  readonly same: number
}

/** The last place at which both sequences have a border between tokens and the same text before it. */
function findFork(tokenizer: Tokenizer, path: Int32Array, now: Int32Array): Fork {
  const start = equalTokens(tokenizer, path, now)
  const [left, right] = [makeReader(tokenizer, path, start), makeReader(tokenizer, now, start)]
  let best: Fork = { keep: start, same: start }
  while (true) {
    const shared = Math.min(left.text.length, right.text.length)
    if (left.text.slice(0, shared) !== right.text.slice(0, shared)) return best
    left.text = left.text.slice(shared)
    right.text = right.text.slice(shared)
    if (left.text === '' && right.text === '') best = { keep: left.at, same: right.at }
    if (!(left.text === '' ? left.read() : right.read())) return best
  }
}

/** How many equal tokens both begin with, up to a control token, so that no character is cut. */
function equalTokens(tokenizer: Tokenizer, path: Int32Array, now: Int32Array): number {
  let start = 0
  for (let index = 0; index < path.length && path[index] === now[index]; index++) {
    if (tokenizer.isControl(path[index]!)) start = index + 1
  }
  return start
}

/** Tokens as text, read one by one; `text` is what was not yet compared. */
interface TokenReader {
  at: number
  text: string
  /** Reads on until there is text; false at the end. */
  read(): boolean
}

function makeReader(tokenizer: Tokenizer, ids: Int32Array, start: number): TokenReader {
  const decoder = tokenizer.makeDecoder()
  return {
    at: start,
    text: '',
    read() {
      while (this.text === '' && this.at < ids.length) {
        this.text = decoder.push(ids.subarray(this.at, this.at + 1))
        this.at++
        if (this.at === ids.length) this.text += decoder.end()
      }
      return this.text !== ''
    },
  }
}

const shownLength = 60

/** What changed, in words: which turn lost its thinking, or both texts at the place of the change. */
function causeOf({ messages }: BridgeRequest, was: string, now: string): string {
  const change = `${excerpt(was)} became ${excerpt(now)}`
  const turn = lostThought(messages, was, now)
  if (turn !== undefined) return `the template removed the thinking of turn ${turn}: ${change}`
  return `the template writes ${placeOf(messages, was)} otherwise now: ${change}`
}

/** The first turn whose thinking was shown and is no longer. */
function lostThought(messages: readonly Message[], was: string, now: string): number | undefined {
  const turns = messages.filter(message => message.role === 'assistant')
  const lost = turns.findIndex(({ reasoning_content: thought = '' }) => {
    const words = thought.trim()
    return words !== '' && was.includes(words) && !now.includes(words)
  })
  return lost < 0 ? undefined : lost + 1
}

/** Which turn the changed text begins in or before. */
function placeOf(messages: readonly Message[], was: string): string {
  const turns = messages.filter(message => message.role === 'assistant')
  const later = turns.filter(({ content }) => {
    const words = textOf(content).trim()
    return words !== '' && was.includes(words)
  }).length
  return later > 1 ? `text from turn ${turns.length - later + 1} on` : `turn ${turns.length}`
}

function excerpt(text: string): string {
  const cut = text.slice(0, shownLength)
  return JSON.stringify(cut.length < text.length ? `${cut}…` : cut)
}
