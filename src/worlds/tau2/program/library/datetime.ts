import { formatTime, PythonFloat, readTime, UnsupportedError } from '@espalier/text/python'
import { argument } from '../arguments.ts'
import { dayAt, ProgramDate, TimeDelta } from '../dates.ts'
import { nameOf } from '../operators.ts'
import { repr } from '../show.ts'
import {
  BuiltinClass,
  Module,
  type Named,
  Native,
  orElse,
  typeError,
  unwrap,
  type Value,
  valueError,
} from '../values.ts'

function requireInt(value: Value | undefined): number {
  if (typeof value === 'number') return value
  if (value === undefined) throw typeError("function missing required argument 'day' (pos 3)")
  throw typeError(`'${nameOf(value)}' object cannot be interpreted as an integer`)
}

function day(year: number, month: number, date: number): number {
  if (month < 1 || month > 12) throw valueError('month must be in 1..12')
  const at = dayAt(year, month, date)
  if (at === undefined) throw valueError('day is out of range for month')
  return at
}

const PARTS = ['year', 'month', 'day', 'hour', 'minute', 'second'] as const

function makeDate(given: readonly Value[], named: Named, hasTime: boolean): ProgramDate {
  const [year, month, date] = PARTS.slice(0, 3).map((name, at) =>
    requireInt(argument(given, named, at, name)),
  )
  const at = day(year as number, month as number, date as number)
  if (!hasTime) return new ProgramDate(at, false)
  const [hour, minute, second] = PARTS.slice(3).map((name, place) =>
    requireInt(argument(given, named, place + 3, name) ?? 0),
  )
  const seconds = (hour as number) * 3600 + (minute as number) * 60 + (second as number)
  return new ProgramDate(at + seconds * 1000, true)
}

const ISO_DAY = /^(\d{4})-(\d{2})-(\d{2})$/
const ISO_TIME = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2}))?)?$/

/** A date as ISO 8601 writes it, else `undefined`. */
export function readIso(text: string, hasTime: boolean): ProgramDate | undefined {
  const read = (hasTime ? ISO_TIME : ISO_DAY).exec(text)
  if (read === null) return undefined
  const [year, month, date, hour = 0, minute = 0, second = 0] = read
    .slice(1)
    .map(part => Number(part ?? 0))
  const at = dayAt(year as number, month as number, date as number)
  if (at === undefined) return undefined
  return new ProgramDate(at + (hour * 3600 + minute * 60 + second) * 1000, hasTime)
}

function fromIso(value: Value, hasTime: boolean): ProgramDate {
  const text = unwrap(value)
  if (typeof text !== 'string') throw typeError('fromisoformat: argument must be str')
  const date = readIso(text, hasTime)
  if (date === undefined) throw valueError(`Invalid isoformat string: ${repr(text)}`)
  return date
}

/** An attribute of a date or of a span of time. */
export function dateAttribute(object: ProgramDate | TimeDelta, name: string): Value | undefined {
  if (object instanceof TimeDelta) {
    if (name === 'days') return object.days
    if (name === 'seconds') return object.seconds
    if (name === 'microseconds') return object.microseconds
    return name === 'total_seconds'
      ? new Native(name, () => new PythonFloat(object.milliseconds / 1000))
      : undefined
  }
  const place = PARTS.indexOf(name as (typeof PARTS)[number])
  const part = place < 0 ? undefined : object.parts[place]
  return part ?? dateMethod(object, name)
}

function dateMethod(date: ProgramDate, name: string): Value | undefined {
  switch (name) {
    case 'isoformat':
      return new Native(name, ([between], named) =>
        date.text((orElse(between, named.get('sep')) ?? 'T') as string),
      )
    case 'strftime':
      return new Native(name, ([wanted]) =>
        formatTime(unwrap(wanted as Value) as string, new Date(date.at)),
      )
    case 'date':
      return date.hasTime
        ? new Native(
            name,
            () => new ProgramDate(Math.floor(date.at / 86_400_000) * 86_400_000, false),
          )
        : undefined
    case 'weekday':
      return new Native(name, () => (new Date(date.at).getUTCDay() + 6) % 7)
    case 'replace':
      return new Native(name, (_, named) => {
        const parts = date.parts.map((part, at) => named.get(PARTS[at] as string) ?? part)
        return makeDate(parts, new Map(), date.hasTime)
      })
    default:
      return undefined
  }
}

/** A class of this module, with methods of its own. */
class DateClass extends BuiltinClass {
  readonly members: ReadonlyMap<string, Value>
  constructor(
    name: string,
    make: (given: readonly Value[], named: Named) => Value,
    members: ReadonlyMap<string, Value> = new Map(),
  ) {
    super(name, make)
    this.members = members
  }
}

const dateClass = new DateClass(
  'date',
  (given, named) => makeDate(given, named, false),
  new Map([
    ['fromisoformat', new Native('fromisoformat', ([text]) => fromIso(text as Value, false))],
  ]),
)

const datetimeClass = new DateClass(
  'datetime',
  (given, named) => makeDate(given, named, true),
  new Map<string, Value>([
    ['fromisoformat', new Native('fromisoformat', ([text]) => fromIso(text as Value, true))],
    ['strptime', new Native('strptime', given => strptime(given))],
  ]),
)

function strptime([text, format]: readonly Value[]): ProgramDate {
  const [read, pattern] = [unwrap(text as Value), unwrap(format as Value)]
  if (typeof read !== 'string') {
    throw typeError(`strptime() argument 1 must be str, not ${nameOf(text as Value)}`)
  }
  const time = readTime(read, pattern as string)
  if (time.microsecond % 1000 !== 0) throw new UnsupportedError('A part of a millisecond')
  const seconds = time.hour * 3600 + time.minute * 60 + time.second
  const day = dayAt(time.year, time.month, time.day) as number
  return new ProgramDate(day + seconds * 1000 + time.microsecond / 1000, true)
}

const UNITS = {
  days: 86_400_000,
  hours: 3_600_000,
  minutes: 60_000,
  seconds: 1000,
  weeks: 604_800_000,
}

const timedeltaClass = new DateClass('timedelta', (given, named) => {
  let total = given[0] === undefined ? 0 : Number(given[0]) * UNITS.days
  for (const [unit, value] of named) total += Number(value) * UNITS[unit as keyof typeof UNITS]
  return new TimeDelta(total)
})

/** Methods that a class of this module has itself. */
export const dateClassAttribute = (of: BuiltinClass, name: string): Value | undefined =>
  of instanceof DateClass ? of.members.get(name) : undefined

/** Python's `datetime`. */
export const datetimeModule = new Module(
  'datetime',
  new Map<string, Value>([
    ['date', dateClass],
    ['datetime', datetimeClass],
    ['timedelta', timedeltaClass],
  ]),
)
