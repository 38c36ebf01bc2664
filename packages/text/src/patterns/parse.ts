import { type Edge, isNullable, type Part } from './syntax.ts'

/** The deepest nesting that is read: deeper than any pattern that a person wrote. */
const deepest = 100
/** Most character sets that are cached, each in 64 kilobytes. */
const mostSets = 256

/**
 * Reads an expression with the flag `u` or `v` whose syntax is known to be right. Undefined if it
 * contains back-references, which cannot be matched in linear time, or syntax too rare to support.
 */
export function parsePattern({ source, flags }: RegExp): Part | undefined {
  if (!/[uv]/.test(flags)) return undefined
  const reader: Reader = { source, flags, at: 0, depth: 0, sets: new Map() }
  try {
    return readChoice(reader)
  } catch (cause) {
    if (cause instanceof Unknown) return undefined
    throw cause
  }
}

/** Thrown for syntax that is not supported here. */
class Unknown extends Error {}

interface Reader {
  readonly source: string
  readonly flags: string
  at: number
  depth: number
  /** The sets that were met, by how they are written. */
  readonly sets: Map<string, Part>
}

function readChoice(reader: Reader): Part {
  if (++reader.depth > deepest) throw new Unknown()
  const options: Part[] = []
  do options.push(readSequence(reader))
  while (take(reader, '|'))
  reader.depth--
  return options.length === 1 ? options[0]! : { kind: 'choice', parts: options }
}

function readSequence(reader: Reader): Part {
  const parts: Part[] = []
  while (reader.at < reader.source.length && !/[|)]/.test(reader.source[reader.at]!)) {
    parts.push(readRepeated(reader))
  }
  return parts.length === 1 ? parts[0]! : { kind: 'sequence', parts }
}

function readRepeated(reader: Reader): Part {
  const part = readAtom(reader)
  const found = takeMatch(reader, /([*+?]|\{(\d+)(?:(,)(\d*))?\})(\??)/y)
  if (!found) return part
  const [, sign, low, comma, high, lazy] = found
  const least = sign === '+' ? 1 : Number(low ?? 0)
  const most = mostOf(sign!, { least, comma, high })
  // JavaScript undoes an empty iteration, which cannot be decided from the place alone.
  if (most > least && isNullable(part)) throw new Unknown()
  return { kind: 'repeat', part, least, most, isLazy: lazy === '?' }
}

function mostOf(
  sign: string,
  { least, comma, high }: { least: number; comma: string | undefined; high: string | undefined },
): number {
  if (sign === '?') return 1
  if (sign === '*' || sign === '+') return Number.POSITIVE_INFINITY
  if (comma === undefined) return least
  return high === '' ? Number.POSITIVE_INFINITY : Number(high)
}

function readAtom(reader: Reader): Part {
  const next = reader.source[reader.at]
  if (next === '(') return readGroup(reader)
  if (next === '[') return setOf(reader, takeClass(reader))
  if (next === '\\') return readEscape(reader)
  const isManyLined = reader.flags.includes('m')
  if (take(reader, '^')) return edge(isManyLined ? 'line-start' : 'text-start')
  if (take(reader, '$')) return edge(isManyLined ? 'line-end' : 'text-end')
  return setOf(reader, takeMatch(reader, /./suy)![0])
}

const edge = (of: Edge): Part => ({ kind: 'edge', of })

const looks = {
  '(?=': { isAhead: true, isNegated: false },
  '(?!': { isAhead: true, isNegated: true },
  '(?<=': { isAhead: false, isNegated: false },
  '(?<!': { isAhead: false, isNegated: true },
} as const

function readGroup(reader: Reader): Part {
  const atom = takeMatch(reader, /\(\?:\(\?=\(\?<(atom\d+)>/y)
  if (atom) {
    const part = readChoice(reader)
    // `(?=(?<name>…))\k<name>` is the idiom for an atomic group.
    if (!take(reader, `))\\k<${atom[1]}>)`)) throw new Unknown()
    return { kind: 'atomic', part }
  }
  const open = takeMatch(reader, /\(\?<?[=!]|\(\?:|\(\?<[^>]*>|\((?!\?)/y)?.[0]
  if (open === undefined) throw new Unknown()
  const part = readChoice(reader)
  take(reader, ')')
  const look = looks[open as keyof typeof looks]
  return look ? { kind: 'look', part, ...look } : part
}

function readEscape(reader: Reader): Part {
  if (take(reader, '\\b')) return edge('word-edge')
  if (take(reader, '\\B')) return edge('no-word-edge')
  if (/\\[1-9k]/y.test(reader.source.slice(reader.at, reader.at + 2))) throw new Unknown()
  const written = takeMatch(
    reader,
    /\\(?:u\{[^}]*\}|[pP]\{[^}]*\}|ud[89ab]..\\ud[c-f]..|u....|x..|c.|.)/isuy,
  )
  return setOf(reader, written![0])
}

/** A class, which may hold others if the flag is `v`. */
function takeClass(reader: Reader): string {
  const start = reader.at
  const nests = reader.flags.includes('v')
  let depth = 0
  do {
    const next = reader.source[reader.at++]
    if (next === '\\') reader.at++
    else if (next === '[' && (nests || depth === 0)) depth++
    else if (next === ']') depth--
  } while (depth > 0)
  return reader.source.slice(start, reader.at)
}

/** Classes of texts of several characters. */
const ofTexts = /\\q\{|\\p\{(?:Basic_Emoji|Emoji_Keycap|RGI_)/

function setOf(reader: Reader, written: string): Part {
  if (ofTexts.test(written)) throw new Unknown()
  const known = reader.sets.get(written)
  if (known) return known
  if (reader.sets.size >= mostSets) throw new Unknown()
  const isPlain = !reader.flags.includes('i') && /^[^\\[.]$/su.test(written)
  const point = written.codePointAt(0)
  const accepts = isPlain
    ? (given: number) => given === point
    : remembered(new RegExp(`^(?:${written})$`, reader.flags.replace(/[gmy]/g, '')))
  const set: Part = { kind: 'set', accepts }
  if (!isPlain) reader.sets.set(written, set)
  return set
}

/** Asks about each character once; those beyond the first plane are rare and asked about again. */
function remembered(one: RegExp): (point: number) => boolean {
  const answers = new Uint8Array(0x10000)
  return point => {
    if (point >= answers.length) return one.test(String.fromCodePoint(point))
    answers[point] ||= one.test(String.fromCodePoint(point)) ? 2 : 1
    return answers[point] === 2
  }
}

function take(reader: Reader, text: string): boolean {
  if (!reader.source.startsWith(text, reader.at)) return false
  reader.at += text.length
  return true
}

function takeMatch(reader: Reader, expression: RegExp): RegExpExecArray | undefined {
  expression.lastIndex = reader.at
  const found = expression.exec(reader.source) ?? undefined
  reader.at += found?.[0].length ?? 0
  return found
}
