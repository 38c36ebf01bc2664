import { type Broken, malformed } from './call.ts'
import { Markers } from './markers.ts'
import type { ParsedCall } from './parser.ts'
import type { Reader, Source } from './source.ts'
import { type Thinking, thinkingReader } from './thinking.ts'

/** What a reader found where a call may begin; `text` if it is no attempt at a call at all. */
export type UnitResult =
  | { readonly kind: 'calls'; readonly calls: readonly ParsedCall[] }
  | { readonly kind: 'text' }
  | Broken

/** Where a reader puts what it finds. */
export interface Sink {
  content(text: string, start: number): void
  reasoning(text: string): void
  call(call: ParsedCall): void
}

/** One way of writing a call. */
export interface Unit {
  /** What a call begins with. */
  readonly opens: readonly string[]
  /** What a call ends with: a broken one is kept up to and with the first of these. */
  readonly closes: readonly string[]
  /** Openings that are too common to end a broken call before them. */
  readonly weak?: readonly string[]
  /** Reads a call from its first character on; what it consumes of a broken one is given back. */
  read(source: Source): Reader<UnitResult>
}

/** A format of calls between other text. */
export interface Blocks {
  readonly unit?: Unit
  /** Markers around any number of calls. */
  readonly section?: { readonly open: string; readonly close: string }
  /** A way of writing calls that counts only if the message begins. */
  readonly opening?: Unit
  /** Framing that is not part of the message's text. */
  readonly framing?: readonly string[]
  /** Framing with variable text in it. */
  readonly header?: Header
}

interface Header {
  readonly open: string
  readonly end: string
  /** What a turn begins with whose prompt ends within the header. */
  readonly rest: string
}

/** Puts what it reads into the sink. */
export type StageReader = (source: Source, sink: Sink) => Reader<void>

/** Reads text with blocks of calls and of thinking in it. */
export function blockReader(format: Blocks, thinking?: Thinking): StageReader {
  const { unit, section, opening, framing = [], header } = format
  const tops = section ? [section.open] : (unit?.opens ?? [])
  const opens = [header?.open, thinking?.open].filter(string => string !== undefined)
  const reading: BlockReading = {
    seen: new Markers([...tops, ...framing, ...opens]),
    frames: new Set(framing),
    header,
    thinking,
    think: thinking && thinkingReader(thinking),
    begin: opening && beginningReader(opening),
    calls: unit && callReader(unit, section),
  }
  return (source, sink) => readBlocks(source, sink, reading)
}

interface BlockReading {
  readonly seen: Markers
  readonly frames: ReadonlySet<string>
  readonly header: Header | undefined
  readonly thinking: Thinking | undefined
  readonly think: StageReader | undefined
  readonly begin: StageReader | undefined
  readonly calls: StageReader | undefined
}

// One function for all parsers, so that its coroutines share one hidden class: a function made per
// parser would make the JavaScript engine compile everything that runs them anew.
function* readBlocks(source: Source, sink: Sink, reading: BlockReading): Reader<void> {
  const { seen, frames, header, thinking, think, begin, calls } = reading
  if (think && thinking?.inside) yield* think(source, sink)
  else if (thinking?.strayClose) yield* source.take(thinking.close)
  if (header) yield* readRest(source, header)
  if (begin) yield* begin(source, sink)
  for (;;) {
    const marker = yield* source.until(seen, sink.content)
    if (marker === undefined) return
    if (frames.has(marker)) source.skip(marker.length)
    else if (think && marker === thinking?.open) {
      yield* think(source, sink)
      if (begin) yield* begin(source, sink)
    } else if (marker === header?.open) yield* readHeader(source, sink, header)
    else if (calls) yield* calls(source, sink)
  }
}

function callReader(unit: Unit, section: Blocks['section']): StageReader {
  if (!section) return attemptReader(unit)
  const fences = [section.open, section.close]
  const attempts = attemptReader(unit, fences)
  const reading = { unit, section, attempts, stops: new Markers([...strong(unit), ...fences]) }
  return (source, sink) => readSection(source, sink, reading)
}

/** Blanks at the beginning of a message, and a call if one follows them. */
function beginningReader(unit: Unit): StageReader {
  const attempts = attemptReader(unit)
  return function* (source, sink) {
    const blank = source.collect()
    yield* source.spaces()
    const text = blank.text()
    blank.close()
    sink.content(text, source.position - text.length)
    if (yield* standsHere(source, unit.opens)) yield* attempts(source, sink)
  }
}

/** Takes the rest of a header that the prompt opened. */
function* readRest(source: Source, { open, end, rest }: Header): Reader<void> {
  if (yield* source.take(end)) return
  if (!(yield* source.next(rest))) return
  const found = yield* source.spot(new Markers([end, open]), { from: rest.length })
  if (found?.marker === end) source.skip(rest.length + found.text.length + end.length)
}

function* readHeader(source: Source, sink: Sink, header: Header): Reader<void> {
  const from = header.open.length
  const found = yield* source.spot(new Markers([header.end, header.open]), { from })
  if (found?.marker === header.end) source.skip(from + found.text.length + header.end.length)
  else {
    sink.content(header.open, source.position)
    source.skip(from)
  }
}

/** Reads one call where a call may begin, and keeps what breaks as malformed. */
export function attemptReader(unit: Unit, fences: readonly string[] = []): StageReader {
  return passedAttempt(unit, fences, ({ attempt, raw, start }, sink) => {
    if (attempt.kind === 'calls') for (const call of attempt.calls) sink.call(call)
    else if (attempt.kind === 'text') sink.content(raw, start)
    else sink.call(malformed(attempt, raw))
  })
}

/** Reads one call where a call may begin, and passes its text on as content. */
export function rawAttemptReader(unit: Unit, fences: readonly string[] = []): StageReader {
  return passedAttempt(unit, fences, ({ raw, start }, sink) => sink.content(raw, start))
}

/** An attempt at a call that was read, the text it was read from, and where that begins. */
interface Passed {
  readonly attempt: UnitResult
  readonly raw: string
  readonly start: number
}

interface AttemptReading {
  readonly unit: Unit
  readonly closers: ReadonlySet<string>
  readonly stops: Markers
  readonly put: (passed: Passed, sink: Sink) => void
}

function passedAttempt(
  unit: Unit,
  fences: readonly string[],
  put: AttemptReading['put'],
): StageReader {
  const closers = new Set(unit.closes)
  const stops = new Markers([...new Set([...unit.closes, ...strong(unit), ...fences])])
  const reading: AttemptReading = { unit, closers, stops, put }
  return (source, sink) => readAttempt(source, sink, reading)
}

function* readAttempt(source: Source, sink: Sink, reading: AttemptReading): Reader<void> {
  const { unit, closers, stops, put } = reading
  const mark = source.collect()
  const attempt = yield* unit.read(source)
  const rewound = attempt.kind !== 'calls' && mark.giveBack()
  const read = rewound ? source.collect() : mark
  if (rewound) {
    source.skip(1)
    if (attempt.kind !== 'text') {
      const stop = yield* source.until(stops)
      if (stop !== undefined && closers.has(stop)) source.skip(stop.length)
    }
  }
  const raw = read.text()
  read.close()
  put({ attempt, raw, start: source.position - raw.length }, sink)
}

const strong = ({ opens, weak = [] }: Unit): string[] => opens.filter(open => !weak.includes(open))

interface Section {
  readonly unit: Unit
  readonly section: { readonly open: string; readonly close: string }
  readonly attempts: StageReader
  readonly stops: Markers
}

function* readSection(source: Source, sink: Sink, options: Section): Reader<void> {
  const { unit, section, attempts, stops } = options
  let raw = source.collect()
  source.skip(section.open.length)
  for (let tried = false; ; ) {
    yield* source.spaces()
    if (yield* standsHere(source, unit.opens)) {
      raw.close()
      yield* attempts(source, sink)
      raw = source.collect()
      tried = true
      continue
    }
    if (yield* source.take(section.close)) {
      if (!tried) sink.call(malformed(emptySection, raw.text()))
      break
    }
    const before = source.position
    yield* source.until(stops)
    if (source.position > before || (source.finished && !tried)) {
      sink.call(malformed(source.finished ? cutSection : strayText, raw.text()))
      tried = true
      raw.close()
      raw = source.collect()
    }
    if (source.finished || (yield* source.next(section.open))) break
  }
  raw.close()
}

const emptySection: Broken = { kind: 'broken', problem: 'the section of calls is empty' }
const cutSection: Broken = { kind: 'broken', problem: 'the section of calls is cut off' }
const strayText: Broken = { kind: 'broken', problem: 'there is text where a call belongs' }

/** Which of the strings stands here. */
export function* standsHere(
  source: Source,
  strings: readonly string[],
): Reader<string | undefined> {
  for (const string of strings) if (yield* source.next(string)) return string
  return undefined
}

/** Takes the closing marker of a call, or says why it is not there. */
export function* closing(source: Source, close: string): Reader<Broken | undefined> {
  yield* source.spaces()
  if (yield* source.take(close)) return undefined
  const problem = source.finished
    ? `the call is cut off before ${close}`
    : `the call does not end with ${close}`
  return { kind: 'broken', problem }
}
