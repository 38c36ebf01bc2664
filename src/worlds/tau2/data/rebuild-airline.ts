import {
  dumps,
  type PythonDict,
  PythonFloat,
  type PythonValue,
  parseJson,
} from '@espalier/text/python'

/**
 * The airline database of tau2-bench, to the byte, from the three files of tau-bench that it was made
 * from: keys in another order, ids inside of records, amounts as floats, and two corrections.
 */
export function rebuildAirline(read: (file: string) => string): string {
  const flights = parseJson(read('flights.json')) as PythonDict
  const users = parseJson(read('users.json')) as PythonDict
  const reservations = parseJson(read('reservations.json')) as PythonDict
  const database: PythonDict = new Map<string, PythonValue>([
    ['flights', mapped(flights, flight => leading(flight, ROUTE))],
    ['users', mapped(users, (user, id) => rebuildUser(user, id))],
    ['reservations', mapped(reservations, rebuildReservation)],
  ])
  correct(database)
  return dumps(database, { indent: 4 })
}

const ROUTE = ['origin', 'destination', 'flight_number']

function mapped(
  dict: PythonDict,
  change: (value: PythonDict, key: PythonValue) => PythonDict,
): PythonDict {
  return new Map([...dict].map(([key, value]) => [key, change(value as PythonDict, key)]))
}

/** The pairs of a dict, those with these keys first. */
function leading(dict: PythonDict, keys: readonly string[]): PythonDict {
  const first = keys
    .filter(key => dict.has(key))
    .map(key => [key, dict.get(key) as PythonValue] as const)
  return new Map([...first, ...[...dict].filter(([key]) => !keys.includes(key as string))])
}

function rebuildUser(user: PythonDict, id: PythonValue): PythonDict {
  const methods = mapped(user.get('payment_methods') as PythonDict, method => {
    const changed = leading(method, ['source', 'id'])
    const amount = changed.get('amount')
    if (typeof amount === 'number') changed.set('amount', new PythonFloat(amount))
    return changed
  })
  const rebuilt: PythonDict = new Map([['user_id', id], ...user])
  rebuilt.set('payment_methods', methods)
  return rebuilt
}

function rebuildReservation(reservation: PythonDict): PythonDict {
  const flights = reservation.get('flights') as readonly PythonDict[]
  const rebuilt: PythonDict = new Map(reservation)
  rebuilt.set(
    'flights',
    flights.map(flight => leading(flight, ROUTE)),
  )
  return rebuilt
}

const at = (dict: PythonValue, ...keys: readonly string[]): PythonDict =>
  keys.reduce((inner, key) => (inner as PythonDict).get(key) as PythonValue, dict) as PythonDict

/** The two records that were changed by hand. */
function correct(database: PythonDict): void {
  const delayed = new Map([
    ['status', 'delayed'],
    ['estimated_departure_time_est', '2024-05-11T16:30:00'],
    ['estimated_arrival_time_est', '2024-05-11T19:05:00'],
  ])
  at(database, 'flights', 'HAT018', 'dates').set('2024-05-11', delayed as PythonDict)
  const reservation = at(database, 'reservations', 'Z7GOZK')
  reservation.set('destination', 'IAH')
  reservation.set('flight_type', 'round_trip')
}
