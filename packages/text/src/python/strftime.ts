/** The days of the week. */
export const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
/** The months of the year. */
export const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
]

const DIRECTIVE = /%([-_0^#]*)([0-9]*)([a-zA-Z%+])/g

/** The time that clocks here show, written down as if it were UTC. */
export const localTime = (date: Date): Date =>
  new Date(date.getTime() - date.getTimezoneOffset() * 60_000)

/** Python's `datetime.strftime` in the C locale, for a time without a zone: the date's own in UTC. */
export function formatTime(format: string, date: Date): string {
  return format.replace(DIRECTIVE, (whole, flags: string, width: string, letter: string) => {
    const field = formatField(letter, date)
    if (field === undefined) return whole
    return applyFlags(field, flags, width)
  })
}

/** A field's text, or a number with its width and fill. */
type Field = string | { readonly value: number; readonly width: number; readonly fill: string }

const two = (value: number): Field => ({ value, width: 2, fill: '0' })

function applyFlags(field: Field, flags: string, width: string): string {
  if (typeof field === 'string') {
    const text = flags.includes('^') ? field.toUpperCase() : field
    return text.padStart(Math.min(Number(width || 0), 100), ' ')
  }
  const fill = flags.includes('_') ? ' ' : flags.includes('0') ? '0' : field.fill
  if (flags.includes('-')) return String(field.value)
  return String(field.value).padStart(Math.min(Number(width || field.width), 100), fill)
}

function formatField(letter: string, date: Date): Field | undefined {
  const day = DAYS[date.getUTCDay()] as string
  const month = MONTHS[date.getUTCMonth()] as string
  switch (letter) {
    case 'a':
      return day.slice(0, 3)
    case 'A':
      return day
    case 'b':
    case 'h':
      return month.slice(0, 3)
    case 'B':
      return month
    case 'd':
      return two(date.getUTCDate())
    case 'e':
      return { value: date.getUTCDate(), width: 2, fill: ' ' }
    case 'm':
      return two(date.getUTCMonth() + 1)
    case 'y':
      return two(date.getUTCFullYear() % 100)
    case 'Y':
      return { value: date.getUTCFullYear(), width: 1, fill: '0' }
    case 'C':
      return two(Math.floor(date.getUTCFullYear() / 100))
    case '%':
      return '%'
    case 'n':
      return '\n'
    case 't':
      return '\t'
    default:
      return formatClock(letter, date) ?? formatWeek(letter, date) ?? formatWhole(letter, date)
  }
}

function formatClock(letter: string, date: Date): Field | undefined {
  const hours = date.getUTCHours()
  switch (letter) {
    case 'H':
      return two(hours)
    case 'I':
      return two(hours % 12 || 12)
    case 'k':
      return { value: hours, width: 2, fill: ' ' }
    case 'l':
      return { value: hours % 12 || 12, width: 2, fill: ' ' }
    case 'M':
      return two(date.getUTCMinutes())
    case 'S':
      return two(date.getUTCSeconds())
    case 'f':
      return { value: date.getUTCMilliseconds() * 1000, width: 6, fill: '0' }
    case 'p':
      return hours < 12 ? 'AM' : 'PM'
    case 'P':
      return hours < 12 ? 'am' : 'pm'
    case 'z':
    case 'Z':
      return ''
    case 's':
      return String(Math.floor(date.getTime() / 1000) + date.getTimezoneOffset() * 60)
    default:
      return undefined
  }
}

/** Days since the first of January. */
function dayOfYear(date: Date): number {
  const start = new Date(date).setUTCMonth(0, 1)
  return Math.round((date.getTime() - start) / 86_400_000)
}

function formatWeek(letter: string, date: Date): Field | undefined {
  const weekday = date.getUTCDay()
  switch (letter) {
    case 'j':
      return { value: dayOfYear(date) + 1, width: 3, fill: '0' }
    case 'w':
      return { value: weekday, width: 1, fill: '0' }
    case 'u':
      return { value: weekday || 7, width: 1, fill: '0' }
    case 'U':
      return two(Math.floor((dayOfYear(date) + 7 - weekday) / 7))
    case 'W':
      return two(Math.floor((dayOfYear(date) + 7 - ((weekday + 6) % 7)) / 7))
    case 'V':
      return two(isoWeek(date).week)
    case 'G':
      return { value: isoWeek(date).year, width: 1, fill: '0' }
    case 'g':
      return two(isoWeek(date).year % 100)
    default:
      return undefined
  }
}

/** The week of ISO 8601: the one that holds the week's Thursday. */
function isoWeek(date: Date): { week: number; year: number } {
  const thursday = new Date(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate())
  thursday.setDate(thursday.getDate() + 4 - (date.getUTCDay() || 7))
  return { week: Math.floor(dayOfYear(thursday) / 7) + 1, year: thursday.getFullYear() }
}

const WHOLE: ReadonlyMap<string, string> = new Map([
  ['c', '%a %b %e %H:%M:%S %Y'],
  ['D', '%m/%d/%y'],
  ['x', '%m/%d/%y'],
  ['F', '%Y-%m-%d'],
  ['T', '%H:%M:%S'],
  ['X', '%H:%M:%S'],
  ['R', '%H:%M'],
  ['r', '%I:%M:%S %p'],
])

function formatWhole(letter: string, date: Date): Field | undefined {
  const format = WHOLE.get(letter)
  return format === undefined ? undefined : formatTime(format, date)
}
