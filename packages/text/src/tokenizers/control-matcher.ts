import type { Marked } from './normalizers/rewriting.ts'
import type { ControlToken } from './tokenizer.ts'
import { wordClass } from './unicode.ts'

/** A stretch of a text: a control token's, or with no control plain text between two. */
export interface ControlStretch {
  readonly start: number
  readonly end: number
  readonly control?: ControlToken
}

/**
 * Cuts a text at its control strings. A string that touches a foreign character is not a control string,
 * except for runs of white space, which some vocabularies list as control tokens and which do no harm.
 */
export type ControlMatcher = (input: Marked) => readonly ControlStretch[]

interface Node {
  readonly next: Map<number, Node>
  control?: ControlToken
}

const WORD = new RegExp(wordClass, 'v')
const WHITE = /\p{White_Space}/u
const BLANK = /[\s▁]/

/**
 * Builds the matcher of the given strings, each with its token: leftmost first, of those the
 * longest, then `singleWord`, `lstrip` and `rstrip` as the reference reads them.
 */
export function makeControlMatcher(
  contents: readonly (readonly [string, ControlToken])[],
): ControlMatcher {
  const root: Node = { next: new Map() }
  for (const [content, control] of contents) insert(root, content, control)
  if (root.next.size === 0)
    return ({ text }) => (text === '' ? [] : [{ start: 0, end: text.length }])
  const nextOf = makeSearch([...root.next.keys()])
  return input => {
    const { text } = input
    const stretches: ControlStretch[] = []
    let done = 0
    for (let at = nextOf(text, 0); at >= 0; ) {
      const found = longestAt(input, at, root)
      at = nextOf(text, found?.end ?? at + 1)
      const stretch = found && widen(text, found, done)
      if (stretch === undefined || stretch.start >= stretch.end) continue
      if (done < stretch.start) stretches.push({ start: done, end: stretch.start })
      stretches.push(stretch)
      done = stretch.end
    }
    if (done < text.length) stretches.push({ start: done, end: text.length })
    return stretches
  }
}

/** Finds the next of these units from a place on, or -1. */
function makeSearch(units: readonly number[]): (text: string, from: number) => number {
  const [only = 0] = units
  if (units.length === 1) {
    const unit = String.fromCharCode(only)
    return (text, from) => text.indexOf(unit, from)
  }
  const any = new RegExp(`[${units.map(escapeUnit).join('')}]`, 'g')
  return (text, from) => {
    any.lastIndex = from
    return any.test(text) ? any.lastIndex - 1 : -1
  }
}

interface Found extends ControlStretch {
  readonly control: ControlToken
}

function insert(root: Node, content: string, control: ControlToken): void {
  let node = root
  for (let at = 0; at < content.length; at++) {
    const unit = content.charCodeAt(at)
    const next = node.next.get(unit) ?? { next: new Map() }
    node.next.set(unit, next)
    node = next
  }
  node.control ??= control
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}

function longestAt({ text, foreign }: Marked, start: number, root: Node): Found | undefined {
  let longest: Found | undefined
  let node: Node | undefined = root
  let isTouched = false
  let isBlank = true
  for (let at = start; at < text.length; at++) {
    isTouched ||= foreign?.[at] === 1
    isBlank &&= BLANK.test(text[at]!)
    if (isTouched && !isBlank) break
    node = node.next.get(text.charCodeAt(at))
    if (node === undefined) break
    if (node.control !== undefined) longest = { start, end: at + 1, control: node.control }
  }
  return longest
}

/**
 * Applies the token's flags; undefined if it must be a single word and is not, or if it is white space
 * that an earlier token has already taken.
 */
function widen(text: string, found: Found, done: number): Found | undefined {
  const { control } = found
  let { start, end } = found
  if (control.singleWord && (isWord(lastOf(text, start)) || isWord(firstOf(text, end)))) {
    return undefined
  }
  if (control.lstrip) {
    // White space that an earlier token has taken is not taken again.
    while (start > done && WHITE.test(text[start - 1]!)) start--
    start = Math.max(start, done)
  }
  if (control.rstrip) while (end < text.length && WHITE.test(text[end]!)) end++
  return { start, end, control }
}

function isWord(character: string): boolean {
  return WORD.test(character)
}

function firstOf(text: string, at: number): string {
  return at < text.length ? String.fromCodePoint(text.codePointAt(at)!) : ''
}

function lastOf(text: string, end: number): string {
  const isPair = end > 1 && /[\udc00-\udfff]/.test(text[end - 1]!)
  return text.slice(end - (isPair ? 2 : 1), end)
}
