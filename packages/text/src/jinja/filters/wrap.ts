import { lineRanges } from '../../python/methods/split.ts'
import type { Run } from '../run.ts'
import { spend } from '../run.ts'

/** How text is wrapped, as Python's `textwrap.wrap` names it. */
export interface WrapOptions {
  readonly width: number
  readonly breakLongWords: boolean
  readonly breakOnHyphens: boolean
  readonly lineBreak: string
}

const SPACES = /([\t\n\v\f\r ]+)/
const HYPHENATED = /(?<=[\p{L}\p{N}_]{2}-)(?=[\p{L}\p{N}_]{2})/u

/** Wraps every line of a text to a width in characters. */
export function wrapText(run: Run, text: string, options: WrapOptions): string {
  spend(run, 16 * text.length)
  return lineRanges(text, false)
    .map(([start, end]) => wrapLine(run, text.slice(start, end), options).join(options.lineBreak))
    .join(options.lineBreak)
}

function wrapLine(run: Run, line: string, options: WrapOptions): string[] {
  const chunks = line
    .split(SPACES)
    .flatMap(word => (options.breakOnHyphens ? word.split(HYPHENATED) : [word]))
    .filter(chunk => chunk !== '')
    .reverse()
  const lines: string[] = []
  while (chunks.length > 0) {
    if (lines.length > 0 && isBlank(chunks.at(-1))) chunks.pop()
    // breaking a long word walks over the rest of it each time
    const { length } = chunks.at(-1) ?? ''
    spend(run, length > options.width ? 4 * length : 4)
    const row = takeRow(chunks, options)
    if (isBlank(row.at(-1))) row.pop()
    if (row.length > 0) lines.push(row.join(''))
  }
  return lines
}

const isBlank = (chunk: string | undefined): boolean => chunk !== undefined && chunk.trim() === ''

function takeRow(chunks: string[], options: WrapOptions): string[] {
  const row: string[] = []
  let length = 0
  while (chunks.length > 0) {
    const chunk = chunks.at(-1) as string
    if (length + [...chunk].length > options.width) break
    row.push(chunk)
    length += [...chunk].length
    chunks.pop()
  }
  const next = chunks.at(-1)
  if (next === undefined || [...next].length <= options.width) return row
  if (options.breakLongWords) {
    const room = Math.max(1, options.width - length)
    row.push([...next].slice(0, room).join(''))
    chunks[chunks.length - 1] = [...next].slice(room).join('')
  } else if (row.length === 0) row.push(chunks.pop() as string)
  return row
}
