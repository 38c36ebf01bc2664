import {
  astralKind,
  CASELESS,
  kindTable,
  LETTER,
  LOWER,
  MARK,
  NEWLINE,
  NUMBER,
  OTHER,
  SPACE,
  UPPER,
} from './kinds.ts'

/**
 * The end of the piece that begins at `start`, in UTF-16 units up to `end`. Written by hand for the
 * split patterns that most models use: faster than a regular expression, and never backtracking.
 */
export type Scanner = (units: Uint16Array, start: number, end: number) => number

const APOSTROPHE = 0x27
const SLASH = 0x2f
const BLANK = 0x20
const LONG_S = 0x17f
const CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
const TAIL = '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+'
const DIGITS: readonly (readonly [string, number])[] = [
  ['', 1],
  ['{1,2}', 2],
  ['{1,3}', 3],
  ['+', Number.MAX_SAFE_INTEGER],
]

/** The split pattern of GPT-2, which the pre-tokenizer ByteLevel implies. */
export const gpt2Pattern = `${CONTRACTIONS}| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+`

const scanners = knownScanners()

/** Every split pattern that has a scanner. */
export const scannedPatterns: readonly string[] = [...scanners.keys()]

/** The scanner of a split pattern, if it is one of `scannedPatterns`; all tokenizers share it. */
export function scannerOf(pattern: string): Scanner | undefined {
  return scanners.get(pattern)?.()
}

function knownScanners(): ReadonlyMap<string, () => Scanner> {
  const found = new Map<string, () => Scanner>([[gpt2Pattern, once(spacedWords)]])
  for (const [digits, most] of DIGITS) {
    found.set(
      prefixedPattern('\\p{L}', digits),
      once(() => prefixedWords(LETTER, most)),
    )
    found.set(
      prefixedPattern('\\p{L}\\p{M}', digits),
      once(() => prefixedWords(LETTER | MARK, most)),
    )
    for (const contractions of [true, false]) {
      found.set(
        casedPattern(digits, contractions),
        once(() => casedWords(most, contractions)),
      )
    }
  }
  return found
}

/** Builds when first asked: code that is compiled for one tokenizer then serves the next as well. */
function once(build: () => Scanner): () => Scanner {
  let built: Scanner | undefined
  return () => {
    built ??= build()
    return built
  }
}

function prefixedPattern(letters: string, digits: string): string {
  const word = letters === '\\p{L}' ? letters : `[${letters}]`
  return `(?i:${CONTRACTIONS})|[^\\r\\n\\p{L}\\p{N}]?${word}+|\\p{N}${digits}| ?[^\\s${letters}\\p{N}]+[\\r\\n]*|${TAIL}`
}

function casedPattern(digits: string, contractions: boolean): string {
  const prefix = '[^\\r\\n\\p{L}\\p{N}]?'
  const upper = '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]'
  const lower = '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]'
  const suffix = contractions ? `(?i:${CONTRACTIONS})?` : ''
  const words = `${prefix}${upper}*${lower}+${suffix}|${prefix}${upper}+${lower}*${suffix}`
  return `${words}|\\p{N}${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${TAIL}`
}

/** GPT-2: words, numbers and punctuation may take one blank before them. */
function spacedWords(): Scanner {
  const kinds = kindTable()
  const runs = [LETTER, NUMBER, OTHER | MARK].map(mask => [mask, runOf(mask)] as const)
  return (units, start, end) => {
    if (units[start] === APOSTROPHE) {
      const after = contractionEnd(units, start, end)
      if (after > start && isLowerAscii(units, start + 1, after)) return after
    }
    const inside = units[start] === BLANK && start + 1 < end ? start + 1 : start
    const kind = kinds[units[inside]!]! || astralKind(units, inside)
    for (const [mask, run] of runs) if (kind & mask) return run(units, inside, end)
    return whiteEnd(units, start, end)
  }
}

/** GPT-4, Llama 3, Qwen: a word may take any one character before it but a digit or a newline. */
function prefixedWords(letters: number, mostDigits: number): Scanner {
  const kinds = kindTable()
  const others = (OTHER | MARK) & ~letters
  const letterRun = runOf(letters)
  const otherRun = runOf(others)
  const digitRun = digitsOf(mostDigits)
  return (units, start, end) => {
    const first = units[start]!
    if (first === APOSTROPHE) {
      const after = contractionEnd(units, start, end)
      if (after > start) return after
    }
    const plain = kinds[first]!
    const kind = plain || astralKind(units, start)
    const next = start + (plain ? 1 : 2)
    if (kind & letters) return letterRun(units, next, end)
    if (kind & NUMBER) return digitRun(units, start, end)
    const following = next < end ? kinds[units[next]!]! || astralKind(units, next) : 0
    if (following & letters && kind !== NEWLINE) return letterRun(units, next, end)
    if (kind & others || (first === BLANK && following & others)) {
      return newlinesEnd(units, otherRun(units, next, end), end)
    }
    return linesEnd(units, start, end)
  }
}

/** GPT-4o, gpt-oss, Tekken: as before, and a word also ends where lower case turns to upper. */
function casedWords(mostDigits: number, contractions: boolean): Scanner {
  const kinds = kindTable()
  const otherRun = runOf(OTHER | MARK)
  const digitRun = digitsOf(mostDigits)
  const wordEnd = casedWordEnd()
  return (units, start, end) => {
    const first = units[start]!
    const kind = kinds[first]! || astralKind(units, start)
    if (kind & NUMBER) return digitRun(units, start, end)
    const word = wordEnd(units, start, end)
    if (word > start) return contractions ? contractionEnd(units, word, end) : word
    const inside = first === BLANK && start + 1 < end ? start + 1 : start
    const after = otherRun(units, inside, end)
    return after > inside ? slashesEnd(units, after, end) : linesEnd(units, start, end)
  }
}

/** Capitals, then small letters; or capitals alone. Answers `start` if there is no word. */
function casedWordEnd(): Scanner {
  const kinds = kindTable()
  const mixed = mixedCaseOf()
  const upperRun = runOf(UPPER)
  return (units, start, end) => {
    const plain = kinds[units[start]!]!
    const kind = plain || astralKind(units, start)
    if (kind & LETTER) return mixed(units, start, end) || upperRun(units, start, end)
    if (kind === NEWLINE) return start
    const next = start + (plain ? 1 : 2)
    const after = mixed(units, next, end) || (kind === MARK ? mixed(units, start, end) : 0)
    if (after > 0) return after
    const capitals = upperRun(units, next, end)
    return capitals > next ? capitals : start
  }
}

/** `[upper, caseless]*[lower, caseless]+`, or 0: the second part takes back what it must. */
function mixedCaseOf(): Scanner {
  const kinds = kindTable()
  const lowerRun = runOf(LOWER | CASELESS | MARK)
  return (units, start, end) => {
    let afterCaseless = 0
    let at = start
    while (at < end) {
      const plain = kinds[units[at]!]!
      const kind = plain || astralKind(units, at)
      if (kind === LOWER) return lowerRun(units, at, end)
      if (!(kind & (UPPER | CASELESS | MARK))) break
      at += plain ? 1 : 2
      if (kind !== UPPER) afterCaseless = at
    }
    return afterCaseless
  }
}

/** The end of a run of code points of the given kinds. */
function runOf(mask: number): Scanner {
  const kinds = kindTable()
  return (units, start, end) => {
    let at = start
    while (at < end) {
      const kind = kinds[units[at]!]!
      if (kind & mask) at++
      else if (kind === 0 && astralKind(units, at) & mask) at += 2
      else break
    }
    return at
  }
}

function digitsOf(most: number): Scanner {
  const kinds = kindTable()
  return (units, start, end) => {
    let at = start
    for (let count = 0; count < most && at < end; count++) {
      const kind = kinds[units[at]!]!
      if (kind === NUMBER) at++
      else if (kind === 0 && astralKind(units, at) === NUMBER) at += 2
      else break
    }
    return at
  }
}

function newlinesEnd(units: Uint16Array, start: number, end: number): number {
  let at = start
  while (at < end && (units[at] === 0x0a || units[at] === 0x0d)) at++
  return at
}

function slashesEnd(units: Uint16Array, start: number, end: number): number {
  let at = start
  while (at < end && (units[at] === 0x0a || units[at] === 0x0d || units[at] === SLASH)) at++
  return at
}

/** White space up to its last newline, or as `whiteEnd` if it has none. */
function linesEnd(units: Uint16Array, start: number, end: number): number {
  const kinds = kindTable()
  let afterNewline = 0
  let at = start
  for (; at < end; at++) {
    const kind = kinds[units[at]!]!
    if (kind === NEWLINE) afterNewline = at + 1
    else if (kind !== SPACE) break
  }
  if (afterNewline > 0) return afterNewline
  return at === end || at === start + 1 ? at : at - 1
}

/** White space, but for the last character of it when something follows: that belongs to the word. */
function whiteEnd(units: Uint16Array, start: number, end: number): number {
  const kinds = kindTable()
  let at = start
  while (at < end && kinds[units[at]!]! & (SPACE | NEWLINE)) at++
  return at === end || at === start + 1 ? at : at - 1
}

/** The end of 's 't 're 've 'm 'll 'd in any case behind `start`; `start` if there is none. */
function contractionEnd(units: Uint16Array, start: number, end: number): number {
  if (start + 1 >= end || units[start] !== APOSTROPHE) return start
  const first = units[start + 1]! | 0x20
  // s, t, m, d; the long s folds to s, and no other character folds to any of these letters.
  if (first === 0x73 || first === 0x74 || first === 0x6d || first === 0x64) return start + 2
  if (units[start + 1] === LONG_S) return start + 2
  if (start + 2 >= end) return start
  const second = units[start + 2]! | 0x20
  const isLong =
    (second === 0x65 && (first === 0x72 || first === 0x76)) || (second === 0x6c && first === 0x6c)
  return isLong ? start + 3 : start
}

function isLowerAscii(units: Uint16Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (units[at]! < 0x61 || units[at]! > 0x7a) return false
  return true
}
