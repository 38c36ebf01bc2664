import { nativePattern, type Pattern } from '../patterns/pattern.ts'
import { Cuts } from './buffers.ts'
import {
  type Fields,
  readFields,
  readFlag,
  readList,
  readText,
  UnsupportedPartError,
} from './fields.ts'
import { literalPattern, toPattern } from './patterns.ts'
import { gpt2Pattern, type Scanner, scannerOf } from './scanners.ts'
import { wordClass } from './unicode.ts'

/** A text in the two forms that splitting needs. */
export interface Source {
  readonly text: string
  readonly units: Uint16Array
}

/**
 * Cuts each piece of a text further. A piece never sees the text beyond its own ends. What it gives
 * is good until it is called again.
 */
export type Splitter = (source: Source, pieces: Cuts) => Cuts

/** How a pre-tokenizer of tokenizer.json cuts, and what it does to the text besides. */
export interface PreTokenizer {
  readonly split: Splitter
  /** Whether the bytes of the pieces, in GPT-2's alphabet, are what the model reads. */
  readonly isByteLevel: boolean
  /** Whether a text that begins with no blank is given one. */
  readonly prefixesBlank: boolean
}

const whole: Splitter = (_, pieces) => pieces

/** Builds the pre-tokenizer, or throws `UnsupportedPartError` if it is not known here. */
export function readPreTokenizer(fields: Fields | undefined): PreTokenizer {
  const steps = fields === undefined ? [] : flatten(fields)
  const byteLevel = steps.findIndex(step => step.type === 'ByteLevel')
  if (byteLevel >= 0 && byteLevel < steps.length - 1) {
    throw new UnsupportedPartError('A pre-tokenizer behind ByteLevel would cut bytes, not text')
  }
  const prefixesBlank = byteLevel >= 0 && readFlag(steps[byteLevel]!.add_prefix_space, 'ByteLevel')
  if (prefixesBlank && byteLevel > 0) {
    throw new UnsupportedPartError('ByteLevel with add_prefix_space behind another pre-tokenizer')
  }
  return { split: chain(steps.map(toSplitter)), isByteLevel: byteLevel >= 0, prefixesBlank }
}

/** The steps of a pre-tokenizer, one behind the other. */
export function flatten(fields: Fields): readonly Fields[] {
  if (fields.type !== 'Sequence') return [fields]
  const inner = readList(fields.pretokenizers, 'pretokenizers of a Sequence')
  return inner.flatMap(step => flatten(readFields(step, 'a pre-tokenizer of a Sequence')))
}

function chain(splitters: readonly Splitter[]): Splitter {
  const active = splitters.filter(splitter => splitter !== whole)
  if (active.length <= 1) return active[0] ?? whole
  return (source, pieces) => active.reduce((cuts, splitter) => splitter(source, cuts), pieces)
}

function toSplitter(step: Fields): Splitter {
  switch (step.type) {
    case 'ByteLevel':
      return step.use_regex === false ? whole : scan(scannerOf(gpt2Pattern)!)
    case 'Split':
      return toSplit(step)
    case 'Digits':
      return readFlag(step.individual_digits, 'individual_digits')
        ? match(DIGIT, 'Isolated')
        : match(DIGIT, 'Contiguous')
    case 'Punctuation':
      return match(PUNCTUATION, toBehaviour(step.behavior ?? 'Isolated'))
    case 'CharDelimiterSplit':
      return match(literalPattern(readText(step.delimiter, 'delimiter')), 'Removed')
    case 'BertPreTokenizer':
      return chain([match(BLANK, 'Removed'), match(PUNCTUATION, 'Isolated')])
    case 'Whitespace':
      return match(RUST_WORDS, 'Removed', true)
    case 'WhitespaceSplit':
      return match(BLANK, 'Removed')
    default:
      throw new UnsupportedPartError(
        `The pre-tokenizer ${JSON.stringify(step.type)} is not known. Known: ByteLevel, Metaspace, Split, Digits, Punctuation, CharDelimiterSplit, Whitespace, WhitespaceSplit, BertPreTokenizer, Sequence.`,
      )
  }
}

/** `\w+|[^\w\s]+` as Rust's regular expressions understand it. */
const RUST_WORDS = nativePattern(new RegExp(`${wordClass}+|[^${wordClass}\\p{White_Space}]+`, 'gv'))
const DIGIT = nativePattern(/\p{N}/gu)
const PUNCTUATION = nativePattern(/[!-/:-@[-`{-~\p{P}]/gu)
const BLANK = nativePattern(/\p{White_Space}/gu)

function toSplit(step: Fields): Splitter {
  const pattern = readFields(step.pattern, 'pattern of a Split')
  const behaviour = toBehaviour(step.behavior)
  const isInverted = readFlag(step.invert, 'invert of a Split')
  if (pattern.String !== undefined) {
    const literal = literalPattern(readText(pattern.String, 'String of a Split'))
    return match(literal, behaviour, isInverted)
  }
  const expression = readText(pattern.Regex, 'Regex of a Split')
  const scanner = scannerOf(expression)
  if (scanner !== undefined && behaviour === 'Isolated') return scan(scanner)
  return match(toPattern(expression), behaviour, isInverted)
}

/** What becomes of a match. */
type Behaviour = (typeof BEHAVIOURS)[number]

const BEHAVIOURS = [
  'Removed',
  'Isolated',
  'MergedWithPrevious',
  'MergedWithNext',
  'Contiguous',
] as const

function toBehaviour(value: unknown): Behaviour {
  const found = BEHAVIOURS.find(behaviour => behaviour === value)
  if (found !== undefined) return found
  throw new Error(
    `No split behavior called ${JSON.stringify(value)}. Known: ${BEHAVIOURS.join(', ')}.`,
  )
}

/** Patterns with a scanner match every character, so that nothing is left over. */
function scan(scanner: Scanner): Splitter {
  const cuts = new Cuts()
  return ({ units }, pieces) => {
    cuts.clear()
    for (let index = 0; index < pieces.count; index++) {
      scanInto(cuts, scanner, { units, start: pieces.start(index), end: pieces.end(index) })
    }
    return cuts
  }
}

interface Stretch {
  readonly units: Uint16Array
  readonly start: number
  readonly end: number
}

function scanInto(cuts: Cuts, scanner: Scanner, { units, start, end }: Stretch): void {
  for (let at = start; at < end; ) {
    const next = scanner(units, at, end)
    cuts.add(at, next)
    at = next
  }
}

function match(pattern: Pattern, behaviour: Behaviour, isInverted = false): Splitter {
  const cuts = new Cuts()
  const spans = new Spans(cuts, behaviour, isInverted)
  return ({ text }, pieces) => {
    cuts.clear()
    for (let index = 0; index < pieces.count; index++) {
      const start = pieces.start(index)
      const piece = text.slice(start, pieces.end(index))
      spans.open(start)
      try {
        mark(piece, pattern, spans)
      } catch (cause) {
        throw new Error(`Cannot split a run of ${piece.length} characters by a pattern`, { cause })
      }
    }
    return cuts
  }
}

/** Covers a text with spans from end to end, each a match or what lies between two. */
function mark(text: string, pattern: Pattern, spans: Spans): void {
  let last = 0
  pattern.forEach(text, (start, end) => {
    if (start > last) spans.add(start, false)
    last = end
    spans.add(last, true)
  })
  if (last < text.length) spans.add(text.length, false)
  spans.close()
}

/** Makes pieces of the spans of a text, one span behind the other. */
class Spans {
  readonly #cuts: Cuts
  readonly #behaviour: Behaviour
  readonly #isInverted: boolean
  #offset = 0
  /** Where the piece begins that is not yet cut off, and its last span. */
  #start = 0
  #end = 0
  #isMatch = false

  constructor(cuts: Cuts, behaviour: Behaviour, isInverted: boolean) {
    this.#cuts = cuts
    this.#behaviour = behaviour
    this.#isInverted = isInverted
  }

  /** Begins a text that stands at `offset`. */
  open(offset: number): void {
    this.#offset = offset
    this.#start = 0
    this.#end = 0
  }

  add(end: number, found: boolean): void {
    const isMatch = found !== this.#isInverted
    if (this.#end > this.#start && !isJoined(this.#behaviour, this.#isMatch, isMatch)) this.close()
    this.#isMatch = isMatch
    this.#end = end
  }

  close(): void {
    const isDropped = this.#isMatch && this.#behaviour === 'Removed'
    if (!isDropped) this.#cuts.add(this.#offset + this.#start, this.#offset + this.#end)
    this.#start = this.#end
  }
}

/** Whether a span and the one behind it are one piece. */
function isJoined(behaviour: Behaviour, isMatch: boolean, follower: boolean): boolean {
  if (behaviour === 'MergedWithPrevious') return !isMatch && follower
  if (behaviour === 'MergedWithNext') return isMatch && !follower
  return behaviour === 'Contiguous' && isMatch === follower
}
