import type { Bridge, BridgeRequest } from '../core/renderer.ts'
import { type BridgeContext, bridgeIds, shift } from './bridge.ts'

/**
 * The bridge of a history kept as the template would write it now: where that differs from what
 * the policy saw and sampled, a new path begins at the first token that changed.
 */
export function faithfulBridge(context: BridgeContext, request: BridgeRequest): Bridge {
  const { chat, tokenizer } = context
  const ids = bridgeIds(context, request)
  const { messages, tools } = request
  const full = chat.render({ messages, tools, opensTurn: true })
  const shown = tokenizer.decode(request.path) + tokenizer.decode(ids)
  if (shown === full.text) return { kind: 'extends', ids }
  const { keep, at } = commonTokens(context, request.path, full.text)
  const rest = tokenizer.encode(full.text.slice(at), { foreign: shift(full.foreign, at) })
  return { kind: 'rewrites', keep, ids: rest, reason: causeOf(shown, full.text) }
}

/** How many tokens of the path the text begins with, and where in the text they end. */
function commonTokens(
  { tokenizer }: BridgeContext,
  path: Int32Array,
  text: string,
): { readonly keep: number; readonly at: number } {
  const decoder = tokenizer.openDecoder()
  let at = 0
  let best = { keep: 0, at: 0 }
  for (let index = 0; index < path.length; index++) {
    const piece = decoder.push(path.subarray(index, index + 1))
    if (!text.startsWith(piece, at)) return best
    at += piece.length
    // A token that ends inside a character is no place to cut.
    if (piece.length > 0) best = { keep: index + 1, at }
  }
  return best
}

const shownLength = 60

/** What changed, in words: thinking that was removed, or the place and both texts. */
function causeOf(shown: string, now: string): string {
  let at = 0
  while (at < shown.length && shown[at] === now[at]) at++
  const was = excerpt(shown, at)
  const cause = /^\s*(?:<think>|<\|channel\|>analysis|\[THINK\])/.test(shown.slice(at))
    ? 'the template removed thinking from an earlier turn'
    : 'the template writes earlier text otherwise now'
  return `${cause}: ${was} became ${excerpt(now, at)}`
}

function excerpt(text: string, at: number): string {
  const cut = text.slice(at, at + shownLength)
  return JSON.stringify(at + shownLength < text.length ? `${cut}…` : cut)
}
