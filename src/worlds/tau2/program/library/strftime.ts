import { dayAt, ProgramDate } from '../dates.ts'
import { repr } from '../show.ts'
import { valueError } from '../values.ts'

const MONTHS =
  'January February March April May June July August September October November December'.split(' ')
const DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ')

/** Python's `strftime`, as far as the programs here use it. */
export function formatDate(date: ProgramDate, format: string): string {
  const at = new Date(date.at)
  const two = (value: number): string => String(value).padStart(2, '0')
  const codes: Readonly<Record<string, string>> = {
    Y: String(at.getUTCFullYear()),
    y: two(at.getUTCFullYear() % 100),
    m: two(at.getUTCMonth() + 1),
    d: two(at.getUTCDate()),
    H: two(at.getUTCHours()),
    I: two(at.getUTCHours() % 12 || 12),
    M: two(at.getUTCMinutes()),
    S: two(at.getUTCSeconds()),
    p: at.getUTCHours() < 12 ? 'AM' : 'PM',
    B: MONTHS[at.getUTCMonth()] as string,
    b: (MONTHS[at.getUTCMonth()] as string).slice(0, 3),
    A: DAYS[at.getUTCDay()] as string,
    a: (DAYS[at.getUTCDay()] as string).slice(0, 3),
    '%': '%',
  }
  return format.replace(/%(.)/g, (whole, code: string) => codes[code] ?? whole)
}

const PATTERNS: Readonly<Record<string, string>> = {
  Y: '(?<Y>\\d\\d\\d\\d)',
  m: '(?<m>1[0-2]|0[1-9]|[1-9])',
  d: '(?<d>3[0-1]|[1-2]\\d|0[1-9]|[1-9]| [1-9])',
  H: '(?<H>2[0-3]|[0-1]\\d|\\d)',
  M: '(?<M>[0-5]\\d|\\d)',
  S: '(?<S>6[0-1]|[0-5]\\d|\\d)',
  y: '(?<y>\\d\\d)',
  B: `(?<B>${MONTHS.join('|')})`,
  b: `(?<b>${MONTHS.map(name => name.slice(0, 3)).join('|')})`,
}

const readers = new Map<string, RegExp>()

function readerOf(format: string): RegExp {
  const known = readers.get(format)
  if (known) return known
  const source = format
    .replace(/[\\^$*+?.()|[\]{}]/g, '\\$&')
    .replace(/\s+/g, '\\s+')
    .replace(/%(.)/g, (_, code: string) => {
      const pattern = PATTERNS[code]
      if (pattern !== undefined) return pattern
      throw valueError(`'${code}' is a bad directive in format '${format}'`)
    })
  const reader = new RegExp(`^${source}`, 'i')
  readers.set(format, reader)
  return reader
}

/** Python's `datetime.strptime`. */
export function readDate(text: string, format: string): ProgramDate {
  const read = readerOf(format).exec(text)
  if (read === null) {
    throw valueError(`time data ${repr(text)} does not match format ${repr(format)}`)
  }
  if (read[0].length < text.length) {
    throw valueError(`unconverted data remains: ${text.slice(read[0].length)}`)
  }
  return fromGroups(read.groups ?? {})
}

function fromGroups(groups: Readonly<Record<string, string>>): ProgramDate {
  const number = (code: string, preset: number): number =>
    groups[code] === undefined ? preset : Number(groups[code])
  const short =
    groups.y === undefined ? undefined : Number(groups.y) + (Number(groups.y) < 69 ? 2000 : 1900)
  const named = (groups.B ?? groups.b)?.slice(0, 3).toLowerCase()
  const month = named
    ? MONTHS.findIndex(name => name.slice(0, 3).toLowerCase() === named) + 1
    : number('m', 1)
  const day = dayAt(number('Y', short ?? 1900), month, number('d', 1))
  if (day === undefined) throw valueError('day is out of range for month')
  const seconds = number('H', 0) * 3600 + number('M', 0) * 60 + number('S', 0)
  return new ProgramDate(day + seconds * 1000, true)
}
