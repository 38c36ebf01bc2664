import { PythonError } from '../python/error.ts'
import { type Runtime, spend, spendText } from '../python/runtime.ts'
import { PythonText, PythonTuple } from '../python/value.ts'
import { appendText, emptyText, type Written, writtenText } from './text.ts'
import type { Text, Value } from './value.ts'
import { Namespace, TemplateObject } from './value.ts'
import type { Variables } from './variables.ts'

/** How much a rendering may do before it is stopped. */
export interface Limits {
  /** Units of work: about one per expression evaluated and per eight characters worked on. @default 25 million */
  readonly steps: number
  /** Characters of the output, and of any one string on the way. @default 16 million */
  readonly characters: number
  /** Seconds, for work that is slower than its count of steps; checked while working. @default 10 */
  readonly seconds: number
}

/** Steps between two looks at the clock. */
export const portion = 1_000_000

/** A moment as a template wrote it. */
export interface Moment {
  readonly format: string
  readonly written: string
}

/** The state of one rendering. */
export interface Run extends Runtime {
  readonly variables: Variables
  readonly limits: Limits
  readonly clock: (() => Date) | undefined
  readonly onLong: (() => void) | undefined
  /** The output of the template itself, under all buffers. */
  readonly root: Written
  /** The offsets of text made inside generation blocks. */
  readonly generated: [number, number][]
  /** Values set at the top of the template, for the blocks in it. */
  readonly exports: Map<string, Value>
  /** The dates and times that the template wrote. */
  readonly moments: Moment[]
  /** Where text goes: the top of the template, or the inside of a macro, call or set block. */
  output: Written
  /** Steps left before the next look at the clock, and steps left after that. */
  steps: number
  later: number
  /** When the rendering is stopped. */
  readonly until: number
  depth: number
  /** The offset in the source of the statement at work, for error messages. */
  at: number
}

/** Stops a rendering that does too much or takes too long; else it may go on for a while. */
export function renew(run: Run): void {
  const { steps, seconds } = run.limits
  if (run.steps + run.later < 0) {
    throw new PythonError(
      'LimitError',
      `The template did more than ${steps} steps of work; raise limits.steps if it should.`,
    )
  }
  if (performance.now() > run.until) {
    throw new PythonError(
      'LimitError',
      `The template took longer than ${seconds} seconds; raise limits.seconds if it should.`,
    )
  }
  run.onLong?.()
  const granted = Math.min(portion - run.steps, run.later)
  run.steps += granted
  run.later -= granted
}

/**
 * Counts work on a value by its size, before anything walks over it. Short strings are free: what
 * works on them is paid by the expression it stands in.
 */
export function charge(run: Run, value: Value): void {
  if (typeof value === 'string') {
    if (value.length > 64) spend(run, value.length >> 3)
  } else if (typeof value === 'object' && value !== null) chargeObject(run, value)
}

function chargeObject(run: Run, value: object): void {
  if (value instanceof Map) spend(run, value.size)
  else if (Array.isArray(value)) spend(run, value.length)
  else if (value instanceof PythonText) spend(run, value.size >> 3)
  else if (value instanceof PythonTuple) spend(run, value.items.length)
}

/** Counts work on a value by its size and that of everything inside it. */
export function chargeDeeply(run: Run, value: Value): void {
  charge(run, value)
  if (typeof value !== 'object' || value === null) return
  spend(run, 1)
  if (value instanceof Map) for (const item of value.values()) chargeDeeply(run, item)
  else for (const item of itemsInside(value)) chargeDeeply(run, item)
}

function itemsInside(value: object): Iterable<Value> {
  if (Array.isArray(value)) return value
  if (value instanceof PythonTuple) return value.items
  if (value instanceof Namespace) return value.attributes.values()
  return (value instanceof TemplateObject && value.behaviour.items?.(value.state)) || []
}

/** Raises for a text that is too long. */
export function tooLong({ limits }: Runtime, length: number): never {
  throw new PythonError(
    'LimitError',
    `A text of ${length} characters is longer than limits.characters, ${limits.characters}.`,
  )
}

/** Writes plain text. */
export function writeString(run: Run, text: string): void {
  const { output } = run
  output.text += text
  if (output.text.length > run.limits.characters) tooLong(run, output.text.length)
}

/** Writes text with what is known of its characters. */
export function writeText(run: Run, text: Text): void {
  const { output } = run
  charge(run, text)
  appendText(output, text)
  if (output.text.length > run.limits.characters) tooLong(run, output.text.length)
}

/** Collects what `work` writes instead of printing it. */
export function capture(run: Run, work: () => void): Text {
  const outer = run.output
  const inner = emptyText()
  run.output = inner
  work()
  run.output = outer
  return writtenText(inner)
}

/** How deep macros and recursive loops may call each other; Python stops at about this depth too. */
const MAXIMUM_CALLS = 180

/** Counts a call that begins. */
export function goDeeper(run: Run): void {
  if (++run.depth > MAXIMUM_CALLS) {
    throw new PythonError('RecursionError', 'maximum recursion depth exceeded')
  }
}

/** Works one call deeper, and gives the position of the caller back afterwards. */
export function callDeeper<T>(run: Run, work: () => T): T {
  const { at } = run
  goDeeper(run)
  const value = work()
  run.depth--
  run.at = at
  return value
}

export { spend, spendText }
