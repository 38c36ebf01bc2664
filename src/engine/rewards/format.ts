import { boxedIn } from '../../base/core/answer.ts'
import type { RewardFunction } from '../../base/core/reward.ts'

/** What an answer has to look like, whatever it says. */
export type FormatRule =
  /** It has something in a `\boxed{…}`. */
  | { readonly kind: 'boxed' }
  /** It is one JSON value. */
  | { readonly kind: 'json' }
  /** It is exactly these tags, each once, in this order, none of them empty. */
  | { readonly kind: 'tags'; readonly tags: readonly string[] }

/** 1 if the answer keeps to a format. Reasoning that was parsed off is not part of the answer. */
export function format(rule: FormatRule): RewardFunction {
  return ({ answer }) => Number(keepsTo(answer, rule))
}

function keepsTo(answer: string, rule: FormatRule): boolean {
  switch (rule.kind) {
    case 'boxed':
      return Boolean(boxedIn(answer))
    case 'json':
      return isJson(answer)
    case 'tags':
      return isTagged(answer, rule.tags)
    default:
      return rule satisfies never
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function isTagged(answer: string, tags: readonly string[]): boolean {
  const marks = tags.flatMap(tag => [`<${tag}>`, `</${tag}>`])
  let rest = answer
  for (const tag of tags) {
    const [open, close] = [`<${tag}>`, `</${tag}>`]
    rest = rest.trimStart()
    const end = rest.indexOf(close)
    if (!rest.startsWith(open) || end < 0) return false
    const inside = rest.slice(open.length, end)
    if (!inside.trim() || marks.some(mark => inside.includes(mark))) return false
    rest = rest.slice(end + close.length)
  }
  return rest.trim() === ''
}
