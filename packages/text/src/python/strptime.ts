import { PythonError, UnsupportedError } from './error.ts'
import { reprString } from './repr.ts'
import { DAYS, MONTHS } from './strftime.ts'

/** A moment as it was read from a text, without a zone. */
export interface ReadTime {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly microsecond: number
}

const short = (names: readonly string[]): readonly string[] => names.map(name => name.slice(0, 3))

const PATTERNS: ReadonlyMap<string, string> = new Map([
  ['Y', '(?<Y>\\d\\d\\d\\d)'],
  ['m', '(?<m>1[0-2]|0[1-9]|[1-9])'],
  ['d', '(?<d>3[0-1]|[1-2]\\d|0[1-9]|[1-9]| [1-9])'],
  ['H', '(?<H>2[0-3]|[0-1]\\d|\\d)'],
  ['I', '(?<I>1[0-2]|0[1-9]|[1-9]| [1-9])'],
  ['M', '(?<M>[0-5]\\d|\\d)'],
  ['S', '(?<S>6[0-1]|[0-5]\\d|\\d)'],
  ['f', '(?<f>[0-9]{1,6})'],
  ['y', '(?<y>\\d\\d)'],
  ['p', '(?<p>am|pm)'],
  ['B', `(?<B>${MONTHS.join('|')})`],
  ['b', `(?<b>${short(MONTHS).join('|')})`],
  ['A', `(?<A>${DAYS.join('|')})`],
  ['a', `(?<a>${short(DAYS).join('|')})`],
  ['%', '%'],
])

/** Directives that Python reads and this does not. */
const UNREAD = new Set('cGjuUVwWxXzZ')

const readers = new Map<string, RegExp>()

const valueError = (message: string): PythonError => new PythonError('ValueError', message)

function readerOf(format: string): RegExp {
  const known = readers.get(format)
  if (known) return known
  const source = format
    .replace(/[\\^$*+?.()|[\]{}]/g, '\\$&')
    .replace(/\s+/g, '\\s+')
    .replace(/%([\s\S]?)/g, (_, code: string) => {
      const pattern = PATTERNS.get(code)
      if (pattern !== undefined) return pattern
      if (UNREAD.has(code)) throw new UnsupportedError(`Reading a time by %${code}`)
      if (code === '') throw valueError(`stray % in format '${format}'`)
      throw valueError(`'${code}' is a bad directive in format '${format}'`)
    })
  const reader = readerFrom(source)
  readers.set(format, reader)
  return reader
}

function readerFrom(source: string): RegExp {
  try {
    return new RegExp(`^${source}`, 'i')
  } catch {
    throw new UnsupportedError('Reading the same part of a time twice')
  }
}

/** Python's `datetime.strptime` in the C locale. */
export function readTime(text: string, format: string): ReadTime {
  const read = readerOf(format).exec(text)
  if (read === null) {
    throw valueError(`time data ${reprString(text)} does not match format ${reprString(format)}`)
  }
  if (read[0].length < text.length) {
    throw valueError(`unconverted data remains: ${text.slice(read[0].length)}`)
  }
  return fromGroups(read.groups ?? {})
}

/** How many days a month has. */
const daysIn = (year: number, month: number): number =>
  month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
    ? 29
    : ([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0)

function fromGroups(groups: Readonly<Record<string, string>>): ReadTime {
  const number = (code: string, preset: number): number =>
    groups[code] === undefined ? preset : Number(groups[code])
  const inCentury =
    groups.y === undefined ? undefined : Number(groups.y) + (Number(groups.y) < 69 ? 2000 : 1900)
  const named = (groups.B ?? groups.b)?.slice(0, 3).toLowerCase()
  const month = named
    ? MONTHS.findIndex(name => name.slice(0, 3).toLowerCase() === named) + 1
    : number('m', 1)
  const year = number('Y', inCentury ?? 1900)
  const day = number('d', 1)
  if (year < 1) throw valueError(`year ${year} is out of range`)
  if (day > daysIn(year, month)) throw valueError('day is out of range for month')
  const half = groups.p?.toLowerCase()
  // without a half of the day, the hour of twelve is taken as it stands but for 12, which is midnight
  const hour =
    groups.I === undefined ? number('H', 0) : (Number(groups.I) % 12) + (half === 'pm' ? 12 : 0)
  return {
    year,
    month,
    day,
    hour,
    minute: number('M', 0),
    second: number('S', 0),
    microsecond: Number((groups.f ?? '').padEnd(6, '0')),
  }
}
