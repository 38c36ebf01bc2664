import { linearPattern, nativePattern, type Pattern } from '../patterns/pattern.ts'
import { pinned } from './unicode.ts'

/** A regular expression of tokenizer.json, matched in linear time. */
export function toPattern(pattern: string): Pattern {
  const linear = linearPattern(toRegExp(pattern))
  if (linear) return linear
  throw new Error(
    `The pattern ${JSON.stringify(pattern)} cannot be matched in linear time: it repeats what can be nothing, or is too large`,
  )
}

/**
 * Translates a regular expression as tokenizer.json has it (Oniguruma's dialect, Unicode 16) to one
 * of JavaScript with the flags `gv` that matches the same text. What has no translation is refused.
 */
export function toRegExp(pattern: string): RegExp {
  const reader: PatternReader = { pattern, at: 0, atoms: 0 }
  const source = readAlternatives(reader, false)
  if (reader.at < pattern.length) throw refusal(reader, 'a ")" that closes nothing')
  return new RegExp(source, 'gv')
}

/** A regular expression that matches exactly this text. */
export function toLiteral(text: string): RegExp {
  return new RegExp([...text].map(escaped).join(''), 'gv')
}

/** A pattern that matches exactly this text. */
export function literalPattern(text: string): Pattern {
  return nativePattern(toLiteral(text))
}

/** A text with each match rewritten. */
export function replaceEach(
  text: string,
  pattern: Pick<Pattern, 'forEach'>,
  rewrite: (found: string) => string,
): string {
  const parts: string[] = []
  let last = 0
  pattern.forEach(text, (start, end) => {
    parts.push(text.slice(last, start), rewrite(text.slice(start, end)))
    last = end
  })
  return last === 0 && parts.length === 0 ? text : parts.join('') + text.slice(last)
}

interface PatternReader {
  readonly pattern: string
  at: number
  /** Atomic groups made so far; each has a name of its own. */
  atoms: number
}

/** Oniguruma counts the superscripts and fractions of Latin-1 to the words, and no others. */
const WORD = '[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\u{b2}\\u{b3}\\u{b9}\\u{bc}-\\u{be}]'

const ESCAPES: Readonly<Record<string, string>> = {
  s: '\\p{White_Space}',
  S: '\\P{White_Space}',
  d: pinned('\\p{Nd}'),
  D: `[^${pinned('\\p{Nd}')}]`,
  w: pinned(WORD),
  W: `[^${pinned(WORD)}]`,
  h: '[0-9a-fA-F]',
  n: '\\n',
  r: '\\r',
  t: '\\t',
  f: '\\f',
  v: '\\v',
}

/** In Oniguruma only a line feed ends a line, and `^` and `$` always speak of lines. */
const ANCHORS: Readonly<Record<string, string>> = {
  '^': '(?<![^\\n])',
  $: '(?![^\\n])',
  '.': '[^\\n]',
  '\\A': '(?<![^])',
  '\\z': '(?![^])',
}

const LOOKAROUNDS = ['(?=', '(?!', '(?<=', '(?<!']

function readAlternatives(reader: PatternReader, ignoreCase: boolean): string {
  let source = ''
  let folding = ignoreCase
  while (reader.at < reader.pattern.length && reader.pattern[reader.at] !== ')') {
    if (take(reader, '|')) source += '|'
    else if (take(reader, '(?i)')) folding = true
    else source += readQuantified(reader, folding)
  }
  return source
}

function readQuantified(reader: PatternReader, ignoreCase: boolean): string {
  const atom = readAtom(reader, ignoreCase)
  const quantifier = takeMatch(reader, /[?*+]|\{\d+(?:,\d*)?\}|\{,\d+\}/y)?.replace('{,', '{0,')
  if (quantifier === undefined) return atom
  if (take(reader, '?')) return `${atom}${quantifier}?`
  if (!take(reader, '+')) return `${atom}${quantifier}`
  // In Oniguruma, + after braces repeats once more; elsewhere it makes the quantifier possessive.
  if (quantifier.startsWith('{')) return `(?:${atom}${quantifier})+`
  return atomic(reader, `${atom}${quantifier}`)
}

/** An atomic group, written as a lookahead that captures and a reference that consumes. */
function atomic(reader: PatternReader, source: string): string {
  reader.atoms++
  return `(?:(?=(?<atom${reader.atoms}>${source}))\\k<atom${reader.atoms}>)`
}

function readAtom(reader: PatternReader, ignoreCase: boolean): string {
  const next = reader.pattern[reader.at]!
  if (next === '(') return readGroup(reader, ignoreCase)
  if (next === '[') return readClass(reader, ignoreCase)
  const anchor = takeMatch(reader, /\\[Az]|[$^.]/y)
  if (anchor !== undefined) return ANCHORS[anchor]!
  if ('?*+'.includes(next)) throw refusal(reader, `"${next}" with nothing before it`)
  return readCharacter(reader, ignoreCase)
}

function readGroup(reader: PatternReader, ignoreCase: boolean): string {
  const open = takeMatch(reader, /\(\?<?[=!]|\(\?>|\(\?i:|\(\?-i:|\(\?:|\((?!\?)/y)
  if (open === undefined) throw refusal(reader, 'a kind of group that is not known here')
  const folding = open === '(?i:' || (ignoreCase && open !== '(?-i:')
  const inner = readAlternatives(reader, folding)
  if (!take(reader, ')')) throw refusal(reader, 'the end of the pattern inside a group')
  if (open === '(?>') return atomic(reader, inner)
  return `${LOOKAROUNDS.includes(open) ? open : '(?:'}${inner})`
}

/** A class: a union of characters, ranges, escapes and classes, or an intersection of unions. */
function readClass(reader: PatternReader, ignoreCase: boolean): string {
  take(reader, '[')
  const negation = take(reader, '^') ? '^' : ''
  const unions: string[] = []
  let union = ''
  while (!take(reader, ']')) {
    if (reader.at >= reader.pattern.length) throw refusal(reader, 'the end inside a class')
    if (take(reader, '&&')) {
      unions.push(`[${union}]`)
      union = ''
    } else union += readMember(reader, ignoreCase)
  }
  if (unions.length === 0) return `[${negation}${union}]`
  return `[${negation}${[...unions, `[${union}]`].join('&&')}]`
}

function readMember(reader: PatternReader, ignoreCase: boolean): string {
  if (reader.pattern.startsWith('[:', reader.at)) throw refusal(reader, 'a POSIX bracket')
  if (reader.pattern[reader.at] === '[') return readClass(reader, ignoreCase)
  const first = readPoint(reader)
  if (first === undefined) return readCharacter(reader, ignoreCase)
  const isRange = reader.pattern[reader.at] === '-' && reader.pattern[reader.at + 1] !== ']'
  if (!isRange) return folded(first, ignoreCase)
  reader.at++
  const last = readPoint(reader)
  if (last === undefined) throw refusal(reader, 'a range that ends in a class')
  return rangeOf(first, last, ignoreCase)
}

/** In split patterns, ranges under (?i: occur only among ASCII letters. */
function rangeOf(first: string, last: string, ignoreCase: boolean): string {
  const range = `${escaped(first)}-${escaped(last)}`
  if (!ignoreCase || !/^(?:[a-z]{2}|[A-Z]{2})$/.test(first + last)) return range
  const letters: string[] = []
  for (let code = first.charCodeAt(0); code <= last.charCodeAt(0); code++) {
    letters.push(folded(String.fromCharCode(code), true))
  }
  return letters.join('')
}

/** One literal character, escaped or not; undefined if an escape stands for a class. */
function readPoint(reader: PatternReader): string | undefined {
  const coded = takeMatch(reader, /\\(?:x\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})/y)
  if (coded !== undefined) {
    return String.fromCodePoint(Number.parseInt(coded.replace(/[^0-9a-fA-F]/g, ''), 16))
  }
  const control = takeMatch(reader, /\\[nrtfv]/y)
  if (control !== undefined) return JSON.parse(`"${control.replace('\\v', '\\u000b')}"`) as string
  const plain = takeMatch(reader, /\\[^a-zA-Z0-9]|[^\\]/uy)
  return plain?.replace(/^\\(?=.)/su, '')
}

function readCharacter(reader: PatternReader, ignoreCase: boolean): string {
  const point = readPoint(reader)
  if (point !== undefined) return ignoreCase ? `[${folded(point, true)}]` : escaped(point)
  const property = takeMatch(reader, /\\[pP]\{\^?[A-Za-z_]+\}/y)
  if (property !== undefined) return toProperty(property)
  const set = ESCAPES[reader.pattern[reader.at + 1] ?? '']
  if (set === undefined) throw refusal(reader, 'an escape that is not known here')
  reader.at += 2
  return set
}

/** Scripts have no prefix in Oniguruma; a caret inside the braces negates. */
function toProperty(property: string): string {
  const name = property.slice(3, -1).replace('^', '')
  const isNegated = property.startsWith('\\P') !== property.includes('^')
  const set = pinned(`\\p{${isCategory(name) ? name : `Script=${name}`}}`)
  return isNegated ? `[^${set}]` : set
}

function isCategory(name: string): boolean {
  try {
    return new RegExp(`\\p{${name}}`, 'u') !== undefined
  } catch {
    return false
  }
}

/** Both cases of a letter, and the odd characters that fold to it. */
function folded(point: string, ignoreCase: boolean): string {
  if (!ignoreCase) return escaped(point)
  const odd = { s: '\\u{17f}', k: '\\u{212a}' }[point.toLowerCase()] ?? ''
  const [lower, upper] = [point.toLowerCase(), point.toUpperCase()]
  return lower === upper ? escaped(point) : `${escaped(lower)}${escaped(upper)}${odd}`
}

function escaped(point: string): string {
  return `\\u{${point.codePointAt(0)!.toString(16)}}`
}

function take(reader: PatternReader, text: string): boolean {
  if (!reader.pattern.startsWith(text, reader.at)) return false
  reader.at += text.length
  return true
}

function takeMatch(reader: PatternReader, expression: RegExp): string | undefined {
  expression.lastIndex = reader.at
  const found = expression.exec(reader.pattern)?.[0]
  if (found !== undefined) reader.at += found.length
  return found
}

function refusal(reader: PatternReader, what: string): Error {
  return new Error(
    `Cannot translate the split pattern ${JSON.stringify(reader.pattern)}: ${what}, at ${reader.at}`,
  )
}
