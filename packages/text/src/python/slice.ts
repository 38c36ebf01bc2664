import { typeError, valueError } from './methods/arguments.ts'
import { characterOffsets, isNarrow, joinTexts, likeText, plain, sliceText } from './text/text.ts'
import type { Text, Value } from './value.ts'

/** What a slice asks for, `undefined` if nothing is written there. */
export interface SliceRange {
  readonly start: number | undefined
  readonly stop: number | undefined
  readonly step: number
}

/** Bounds of a slice as they are written: start, stop, step. */
export type SliceBounds = readonly [Value, Value, Value]

/** Reads the bounds of a slice, or raises as Python does. */
export function sliceRange(bounds: SliceBounds): SliceRange {
  const step = toBound(bounds[2]) ?? 1
  if (step === 0) valueError('slice step cannot be zero')
  return { start: toBound(bounds[0]), stop: toBound(bounds[1]), step }
}

function toBound(value: Value): number | undefined {
  if (value === null) return undefined
  if (typeof value === 'number' && Number.isInteger(value)) return value
  if (typeof value === 'boolean') return Number(value)
  if (typeof value === 'bigint')
    return value < 0n ? -Number.MAX_SAFE_INTEGER : Number.MAX_SAFE_INTEGER
  return typeError('slice indices must be integers or None or have an __index__ method')
}

/** The indices that a slice covers: the first one, the one it ends before, and how many. */
export interface Span {
  readonly first: number
  readonly last: number
  readonly count: number
}

/** The indices of a sequence of that length that a slice covers. */
export function span(length: number, { start, stop, step }: SliceRange): Span {
  const low = step > 0 ? 0 : -1
  const high = low + length
  const from = start ?? (step > 0 ? 0 : Number.POSITIVE_INFINITY)
  const to = stop ?? (step > 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY)
  const first = Math.min(high, Math.max(low, from < 0 ? from + length : from))
  const last = Math.min(high, Math.max(low, to < 0 ? to + length : to))
  return { first, last, count: Math.max(0, Math.ceil((last - first) / step)) }
}

/** The items of a sequence that a slice covers. */
export function pick<Item>(items: readonly Item[], range: SliceRange): Item[] {
  const { first, count } = span(items.length, range)
  if (range.step === 1) return items.slice(first, first + count)
  return Array.from({ length: count }, (_, index) => items[first + index * range.step] as Item)
}

/** The characters of a text that a slice covers. */
export function pickText(text: Text, range: SliceRange): Text {
  const source = plain(text)
  const { step } = range
  const offsets = isNarrow(source) ? undefined : characterOffsets(source)
  const { first, count } = span(offsets ? offsets.length - 1 : source.length, range)
  const offset = (index: number): number => (offsets ? (offsets[index] as number) : index)
  if (step === 1) return sliceText(text, offset(first), offset(first + count))
  if (typeof text === 'string' && !offsets) return pickUnits(text, { first, count, step })
  const parts: Text[] = []
  for (let index = 0; index < count; index++) {
    const at = first + index * step
    parts.push(sliceText(text, offset(at), offset(at + 1)))
  }
  return likeText(text, joinTexts(parts))
}

/** The character at an index, counted from the end if it is negative. */
export function characterAt(text: Text, index: number): Text | undefined {
  const source = plain(text)
  if (isNarrow(source)) {
    const offset = index < 0 ? index + source.length : index
    return offset >= 0 && offset < source.length ? sliceText(text, offset, offset + 1) : undefined
  }
  const offsets = characterOffsets(source)
  const position = index < 0 ? index + offsets.length - 1 : index
  const [start, end] = [offsets[position], offsets[position + 1]]
  return start === undefined || end === undefined ? undefined : sliceText(text, start, end)
}

const CHUNK = 8192

/** Every `step`-th unit of a text whose characters are single units. */
function pickUnits(
  text: string,
  { first, count, step }: { readonly first: number; readonly count: number; readonly step: number },
): string {
  const units = new Uint16Array(count)
  for (let index = 0; index < count; index++) units[index] = text.charCodeAt(first + index * step)
  let result = ''
  for (let start = 0; start < count; start += CHUNK) {
    result += String.fromCharCode(...units.subarray(start, start + CHUNK))
  }
  return result
}
