import type { PythonDict, PythonValue } from '@espalier/text/python'
import { compare, dumps, equals, PythonError, reprString, typeName } from '@espalier/text/python'
import { hasKey, isInText, itemOf, typeError } from '../operations.ts'
import { perTables, type Row, type Tables } from '../tables.ts'
import { type Input, type TauTool, tauTool } from '../tool.ts'

/** The flights from one airport, and those between two, in the order of the file. */
const routes = perTables(tables => {
  const from = new Map<PythonValue, Row[]>()
  const between = new Map<PythonValue, Map<PythonValue, Row[]>>()
  for (const flight of tables.table('flights').values()) {
    const origin = itemOf(flight, 'origin')
    const destination = itemOf(flight, 'destination')
    from.set(origin, [...(from.get(origin) ?? []), flight])
    const onward = between.get(origin) ?? new Map<PythonValue, Row[]>()
    between.set(origin, onward.set(destination, [...(onward.get(destination) ?? []), flight]))
  }
  return { from, between }
})

/** A flight on one day as JSON, with the date as well if it is given. */
function legText(flight: Row, day: PythonValue, date?: PythonValue): string {
  const leg: PythonDict = new Map(flight)
  leg.delete('dates')
  for (const [name, value] of itemOf(itemOf(flight, 'dates'), day) as PythonDict) {
    leg.set(name, value)
  }
  if (date !== undefined) leg.set('date', date)
  return dumps(leg)
}

/** Flights never change, so each leg of a connection is written once. */
const connectionTexts = perTables(() => new Map<Row, Map<string, string>>())

function connectionText(
  tables: Tables,
  flight: Row,
  { day, date }: { readonly day: PythonValue; readonly date: PythonValue },
): string {
  const texts = connectionTexts(tables).get(flight) ?? new Map<string, string>()
  connectionTexts(tables).set(flight, texts)
  const key = `${day as string} ${date as string}`
  let text = texts.get(key)
  if (text === undefined) {
    text = legText(flight, day, date)
    texts.set(key, text)
  }
  return text
}

function isAvailable(flight: Row, day: PythonValue): boolean {
  return equals(itemOf(itemOf(itemOf(flight, 'dates'), day), 'status'), 'available')
}

const hasDate = (flight: Row, day: PythonValue): boolean =>
  hasKey(itemOf(flight, 'dates') as PythonDict, day)

type Search = Input<'origin' | 'destination' | 'date'>

const SEARCH = ['origin', 'destination', 'date'] as const

/** Answers by route and day, for days on which something flies there. */
const directAnswers = perTables(() => new Map<readonly Row[], Map<PythonValue, string>>())

function searchDirect(tables: Tables, { origin, destination, date }: Search): string {
  const flights = routes(tables).between.get(origin)?.get(destination)
  if (flights === undefined) return '[]'
  const answers = directAnswers(tables)
  const known = answers.get(flights)?.get(date)
  if (known !== undefined) return known
  const legs = flights
    .filter(flight => hasDate(flight, date) && isAvailable(flight, date))
    .map(flight => legText(flight, date))
  const answer = `[${legs.join(', ')}]`
  if (legs.length > 0) {
    answers.set(flights, (answers.get(flights) ?? new Map<PythonValue, string>()).set(date, answer))
  }
  return answer
}

function searchOneStop(
  tables: Tables,
  { origin, destination, date }: Search,
  { fixed }: { readonly fixed: boolean },
): string {
  const { from, between } = routes(tables)
  const found: string[] = []
  for (const first of from.get(origin) ?? []) {
    const arrival = itemOf(first, 'scheduled_arrival_time_est')
    for (const second of between.get(itemOf(first, 'destination'))?.get(destination) ?? []) {
      const date2 = isInText('+1', arrival as string) ? dayAfter(date, fixed) : date
      if (compare('>', arrival, itemOf(second, 'scheduled_departure_time_est'))) continue
      if (!hasDate(first, date) || !hasDate(second, date2)) continue
      if (!isAvailable(first, date) || !isAvailable(second, date2)) continue
      const one = connectionText(tables, first, { day: date, date })
      // Upstream shows the seats of the first day although the second leg flies on the next.
      const two = connectionText(tables, second, { day: fixed ? date2 : date, date: date2 })
      found.push(`[${one}, ${two}]`)
    }
  }
  return `[${found.join(', ')}]`
}

function dayAfter(date: PythonValue, fixed: boolean): string {
  const day = readDay(date) + 1
  // Upstream forgets the leading zero, so that no connection is found after the 1st to the 8th.
  return `2024-05-${fixed ? String(day).padStart(2, '0') : day}`
}

const INT = /^\s*([+-]?\d+(?:_\d+)*)\s*$/

/** Python's `int(date[-2:])`. */
function readDay(date: PythonValue): number {
  if (date instanceof Map) throw typeError("unhashable type: 'slice'")
  if (Array.isArray(date)) {
    throw typeError(
      "int() argument must be a string, a bytes-like object or a real number, not 'list'",
    )
  }
  if (typeof date !== 'string') throw typeError(`'${typeName(date)}' object is not subscriptable`)
  const suffix = [...date].slice(-2).join('')
  const digits = INT.exec(suffix)?.[1]
  if (digits === undefined) {
    throw new PythonError(
      'ValueError',
      `invalid literal for int() with base 10: ${reprString(suffix)}`,
    )
  }
  return Number(digits.replace('_', ''))
}

const AIRPORTS = [
  ['SFO', 'San Francisco'],
  ['JFK', 'New York'],
  ['LAX', 'Los Angeles'],
  ['ORD', 'Chicago'],
  ['DFW', 'Dallas'],
  ['DEN', 'Denver'],
  ['SEA', 'Seattle'],
  ['ATL', 'Atlanta'],
  ['MIA', 'Miami'],
  ['BOS', 'Boston'],
  ['PHX', 'Phoenix'],
  ['IAH', 'Houston'],
  ['LAS', 'Las Vegas'],
  ['MCO', 'Orlando'],
  ['EWR', 'Newark'],
  ['CLT', 'Charlotte'],
  ['MSP', 'Minneapolis'],
  ['DTW', 'Detroit'],
  ['PHL', 'Philadelphia'],
  ['LGA', 'LaGuardia'],
] as const

const AIRPORTS_TEXT = dumps(new Map<string, PythonValue>(AIRPORTS))

/** The airline tools that look at flights. */
export function airlineFlights(rules: { readonly fixed: boolean }): readonly TauTool[] {
  return [
    tauTool('list_all_airports', [], () => AIRPORTS_TEXT),
    tauTool('search_direct_flight', SEARCH, ({ tables }, input) => searchDirect(tables, input)),
    tauTool('search_onestop_flight', SEARCH, ({ tables }, input) =>
      searchOneStop(tables, input, rules),
    ),
  ]
}
