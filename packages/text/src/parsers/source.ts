import { behindLayout } from './layout.ts'
import type { Markers } from './markers.ts'
import { controlsWithin, type Vocabulary, vocabularyOf } from './vocabulary.ts'

/** Something that parses, mostly a coroutine. It yields if it needs text that has not arrived. */
export interface Reader<Result> extends Iterator<undefined, Result, undefined> {
  [Symbol.iterator](): Reader<Result>
}

/** A reader whose result is known at once, so that no coroutine is needed. */
export class Known<Result> {
  readonly done = true
  readonly value: Result

  constructor(value: Result) {
    this.value = value
  }

  next(): this {
    return this
  }

  [Symbol.iterator](): this {
    return this
  }
}

const yes = new Known(true)
const no = new Known(false)
const nothing = new Known(undefined)

/** Text that is being read, as it is consumed. */
export interface Collector {
  /** What was consumed so far since the collector was opened. */
  text(): string
  close(): void
  /**
   * Gives back everything that was consumed since; this collector and all later ones are closed.
   * Returns false, and gives nothing back, once too much was read again: hostile text then costs
   * precision, never more than linear time.
   */
  giveBack(): boolean
}

interface Found {
  readonly index: number
  readonly marker: string
}

interface Collecting {
  readonly parts: string[]
  from: number
}

/**
 * Text that grows while coroutines read it. Only what nobody has read yet is kept, so a stream of
 * many small pieces costs time in proportion to its length.
 *
 * `vocabulary` holds the control strings of the model's vocabulary where the text was made from
 * token ids: a marker made of such strings then counts only if they arrived as control tokens.
 */
export class Source {
  readonly #vocabulary: Vocabulary | undefined
  readonly #starts: number[] = []
  readonly #ends: number[] = []
  readonly #collecting: Collecting[] = []
  #window = ''
  #at = 0
  #offset = 0
  #ended = false
  #reread = 0
  #furthest = 0

  constructor(vocabulary?: readonly string[]) {
    this.#vocabulary = vocabulary && vocabularyOf(vocabulary)
  }

  /** How many characters were consumed. */
  get position(): number {
    return this.#offset + this.#at
  }

  /** Whether everything has arrived and been consumed. */
  get finished(): boolean {
    return this.#ended && this.#at === this.#window.length
  }

  push(text: string, control: boolean): void {
    if (text === '') return
    for (const collecting of this.#collecting) {
      collecting.parts.push(this.#window.slice(collecting.from, this.#at))
      collecting.from = 0
    }
    const end = this.#offset + this.#window.length
    if (control) {
      this.#starts.push(end)
      this.#ends.push(end + text.length)
    }
    this.#offset += this.#at
    this.#window = this.#window.slice(this.#at) + text
    this.#at = 0
  }

  end(): void {
    this.#ended = true
  }

  /** Waits for more text; false when there will be none. */
  *more(): Reader<boolean> {
    if (this.#ended) return false
    const before = this.#offset + this.#window.length
    while (!this.#ended && this.#offset + this.#window.length === before) yield
    return this.#offset + this.#window.length > before
  }

  /** Calls `answer` now, and whenever text has arrived, until it gives a result; at the end it must. */
  when<Result>(answer: () => Reader<Result> | undefined): Reader<Result> {
    return answer() ?? this.#later(answer)
  }

  *#later<Result>(answer: () => Reader<Result> | undefined): Reader<Result> {
    for (;;) {
      yield
      const answered = answer()
      if (answered) return yield* answered
    }
  }

  /** What is ahead, at least `count` characters of it unless the text ends. Consumes nothing. */
  ahead(count: number): Reader<string> {
    return this.when(() =>
      this.#ended || this.#window.length - this.#at >= count
        ? new Known(this.#window.slice(this.#at, this.#at + count))
        : undefined,
    )
  }

  skip(count: number): void {
    this.#at += count
  }

  /** Consumes what has arrived up to the pattern's first match (all of it if none): the match's text. */
  skipTo(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#window)
    this.#at = match ? match.index : this.#window.length
    return match?.[0]
  }

  /** Consumes what a scanner reads of the text that has arrived. */
  feed(scanner: { read(text: string, from: number, ended: boolean): number }): void {
    this.#at = scanner.read(this.#window, this.#at, this.#ended)
  }

  /** Consumes what the sticky pattern matches here; it should match a bounded length. */
  match(pattern: RegExp): Reader<string> {
    return this.when(() => {
      pattern.lastIndex = this.#at
      const text = pattern.exec(this.#window)?.[0] ?? ''
      if (!this.#ended && this.#at + text.length === this.#window.length) return undefined
      this.#at += text.length
      return new Known(text)
    })
  }

  /** Consumes spaces, tabs and line breaks. */
  spaces(): Reader<void> {
    return this.when(() => {
      this.#at = behindLayout(this.#window, this.#at)
      return this.#ended || this.#at < this.#window.length ? nothing : undefined
    })
  }

  /** Consumes the marker if it stands here; waits only while it still may. */
  take(marker: string): Reader<boolean> {
    return this.when(() => {
      const found = this.#standsHere(marker)
      if (found === yes) this.#at += marker.length
      return found
    })
  }

  /** Whether the marker stands here; waits only while it still may. */
  next(marker: string): Reader<boolean> {
    return this.when(() => this.#standsHere(marker))
  }

  #standsHere(marker: string): Known<boolean> | undefined {
    if (this.#window.length - this.#at >= marker.length) {
      const stands = this.#window.startsWith(marker, this.#at)
      return stands && this.#counts(marker, this.position) ? yes : no
    }
    return this.#ended || !marker.startsWith(this.#window.slice(this.#at)) ? no : undefined
  }

  /** Consumes text up to one of the markers, which stays: the marker, or undefined at the end. */
  until(set: Markers, emit?: (text: string, start: number) => void): Reader<string | undefined> {
    return this.when<string | undefined>(() => {
      const found = this.#find(set, this.#window, this.#at)
      const stop = found?.index ?? (this.#ended ? this.#window.length : this.#unsure(set))
      if (stop > this.#at) emit?.(this.#window.slice(this.#at, stop), this.position)
      this.#at = stop
      if (found) return new Known(found.marker)
      return this.#ended ? nothing : undefined
    })
  }

  /** The text up to one of the markers if one is at most `limit` characters ahead; consumes it. */
  *near(set: Markers, limit = 256): Reader<{ text: string; marker: string } | undefined> {
    const found = yield* this.spot(set, { limit })
    if (found) this.#at += found.text.length
    return found
  }

  /** As `near`, from `from` characters ahead on; consumes nothing. */
  spot(
    set: Markers,
    { limit = 256, from = 0 }: { limit?: number; from?: number } = {},
  ): Reader<{ text: string; marker: string } | undefined> {
    const reach = from + limit + set.longest
    return this.when<{ text: string; marker: string } | undefined>(() => {
      const end = Math.min(this.#window.length, this.#at + reach)
      const found = this.#find(set, this.#window.slice(0, end), this.#at + from)
      if (found) {
        const text = this.#window.slice(this.#at + from, found.index)
        return text.length > limit ? nothing : new Known({ text, marker: found.marker })
      }
      return this.#ended || end === this.#at + reach ? nothing : undefined
    })
  }

  collect(): Collector {
    const collecting: Collecting = { parts: [], from: this.#at }
    // If all text is there already, nothing has to be collected from several windows.
    if (!this.#ended) this.#collecting.push(collecting)
    return {
      text: () => this.#collected(collecting),
      close: () => this.#close(collecting),
      giveBack: () => this.#giveBack(collecting),
    }
  }

  /** The control tokens between two positions, in order. */
  controls(from: number, to: number): readonly (readonly [number, number])[] {
    const found: (readonly [number, number])[] = []
    for (let index = this.#atOrAfter(from); index < this.#starts.length; index++) {
      const start = this.#starts[index]!
      if (start >= to) break
      found.push([start, this.#ends[index]!])
    }
    return found
  }

  #collected({ parts, from }: Collecting): string {
    const text = this.#window.slice(from, this.#at)
    return parts.length === 0 ? text : parts.join('') + text
  }

  #close(collecting: Collecting): void {
    const index = this.#collecting.lastIndexOf(collecting)
    if (index >= 0) this.#collecting.splice(index, 1)
  }

  #giveBack({ parts, from }: Collecting): boolean {
    const before = parts.reduce((total, part) => total + part.length, 0)
    const length = before + this.#at - from
    this.#collecting.length = 0
    this.#furthest = Math.max(this.#furthest, this.position)
    // Never refuse if nothing was consumed, so that a refusal always means progress.
    if (length > 0 && this.#reread + length > 8 * this.#furthest + 4096) return false
    this.#reread += length
    if (before > 0) {
      this.#window = parts.join('') + this.#window.slice(from)
      this.#offset += from - before
      this.#at = 0
    } else this.#at = from
    return true
  }

  #find(set: Markers, text: string, start: number): Found | undefined {
    let from = start
    for (;;) {
      const found = set.find(text, from)
      if (!found) return undefined
      if (this.#counts(found.marker, this.#offset + found.index)) {
        return this.#isOvertaken(found, set) ? undefined : found
      }
      from = found.index + 1
    }
  }

  /** Whether another marker that began no later and is still arriving may win over this one. */
  #isOvertaken({ index }: Found, set: Markers): boolean {
    if (this.#ended || index + set.longest <= this.#window.length) return false
    return this.#unsure(set) <= index
  }

  #unsure(set: Markers): number {
    return set.unsure(this.#window, this.#at)
  }

  #counts(marker: string, start: number): boolean {
    if (!this.#vocabulary) return true
    return controlsWithin(marker, this.#vocabulary).every(([offset, length]) => {
      const index = this.#atOrAfter(start + offset)
      return this.#starts[index] === start + offset && this.#ends[index] === start + offset + length
    })
  }

  #atOrAfter(position: number): number {
    let low = 0
    let high = this.#starts.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#starts[middle]! < position) low = middle + 1
      else high = middle
    }
    return low
  }
}
