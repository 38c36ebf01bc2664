import type { PythonDict, PythonValue } from '@espalier/text/python'
import { compare, equals, str } from '@espalier/text/python'
import type { Database } from '../database.ts'
import { combine, copy, hasKey, itemOf, iterate, lengthOf, sumOf } from '../operations.ts'
import type { Row } from '../tables.ts'
import { type Input, type TauTool, tauTool } from '../tool.ts'
import { bookFlight, methodOf } from './fares.ts'

const BOOKING = [
  'user_id',
  'origin',
  'destination',
  'flight_type',
  'cabin',
  'flights',
  'passengers',
  'payment_methods',
  'total_baggages',
  'nonfree_baggages',
  'insurance',
] as const

type Booking = Input<(typeof BOOKING)[number]>

/** The ids that bookings get, in order. */
const IDS = ['HATHAT', 'HATHAU', 'HATHAV']

function isFree(database: Database, id: string): boolean {
  return database.find('reservations', id) === undefined
}

function newId(database: Database, fixed: boolean): string {
  const free = IDS.find(id => isFree(database, id))
  if (free !== undefined) return free
  // Upstream lets the fourth booking overwrite the third.
  if (!fixed) return IDS.at(-1) as string
  for (let number = 0; ; number++) {
    const id = `HATH${String(number).padStart(2, '0')}`
    if (isFree(database, id)) return id
  }
}

function reservationOf(id: string, input: Booking): PythonDict {
  const reservation: PythonDict = new Map()
  // Built field by field, which is faster than from pairs: bookings are the slowest calls.
  return reservation
    .set('reservation_id', id)
    .set('user_id', input.user_id)
    .set('origin', input.origin)
    .set('destination', input.destination)
    .set('flight_type', input.flight_type)
    .set('cabin', input.cabin)
    .set('flights', copy(input.flights))
    .set('passengers', input.passengers)
    .set('payment_history', input.payment_methods)
    .set('created_at', '2024-05-15T15:00:00')
    .set('total_baggages', input.total_baggages)
    .set('nonfree_baggages', input.nonfree_baggages)
    .set('insurance', input.insurance)
}

const add = (total: PythonValue, right: PythonValue): PythonValue =>
  combine(total, '+', { right, sign: '+=' })

/** The price of everything booked, or the error to show. */
function priceBooking(database: Database, reservation: Row): PythonValue {
  const passengers = itemOf(reservation, 'passengers')
  const party = { cabin: itemOf(reservation, 'cabin'), passengers }
  let total: PythonValue = 0
  for (const flight of iterate(itemOf(reservation, 'flights'))) {
    const fare = bookFlight(database, flight, party)
    if (typeof fare === 'string') return fare
    total = add(total, fare)
  }
  if (equals(itemOf(reservation, 'insurance'), 'yes')) {
    total = add(total, 30 * lengthOf(passengers))
  }
  const baggage = combine(50, '*', { right: itemOf(reservation, 'nonfree_baggages') })
  return add(total, baggage)
}

const STORED_VALUE: readonly PythonValue[] = ['gift_card', 'certificate']

function refusePayments(user: Row, payments: PythonValue, total: PythonValue): string | undefined {
  const methods = itemOf(user, 'payment_methods')
  for (const payment of iterate(payments)) {
    const id = itemOf(payment, 'payment_id')
    const amount = itemOf(payment, 'amount')
    if (!hasKey(methods as PythonDict, id)) return `Error: payment method ${str(id)} not found`
    const method = itemOf(methods, id)
    if (!STORED_VALUE.some(source => equals(source, itemOf(method, 'source')))) continue
    if (compare('<', itemOf(method, 'amount'), amount)) {
      return `Error: not enough balance in payment method ${str(id)}`
    }
  }
  const paid = sumOf(iterate(payments).map(payment => itemOf(payment, 'amount')))
  if (equals(paid, total)) return undefined
  return `Error: payment amount does not add up, total price is ${str(total)}, but paid ${str(paid)}`
}

/** Upstream checks every entry by itself, so one card listed twice can be overdrawn. */
function refuseRepeatedMethods(payments: PythonValue): string | undefined {
  const seen = new Set<PythonValue>()
  for (const payment of iterate(payments)) {
    const id = itemOf(payment, 'payment_id')
    if (seen.has(id)) return `Error: payment method ${str(id)} is listed twice`
    seen.add(id)
  }
  return undefined
}

function takePayments(database: Database, user: Row, payments: PythonValue): void {
  for (const payment of iterate(payments)) {
    const id = itemOf(payment, 'payment_id')
    const source = itemOf(methodOf(user, id), 'source')
    if (equals(source, 'gift_card')) {
      const right = itemOf(payment, 'amount')
      const method = database.dictIn(database.dictIn(user, 'payment_methods'), id)
      method.set('amount', combine(itemOf(method, 'amount'), '-', { right, sign: '-=' }))
    } else if (equals(source, 'certificate')) {
      database.dictIn(user, 'payment_methods').delete(id as string)
    }
  }
}

function book(
  database: Database,
  input: Booking,
  { fixed }: { readonly fixed: boolean },
): PythonValue {
  const found = database.find('users', input.user_id)
  if (found === undefined) return 'Error: user not found'
  const id = newId(database, fixed)
  const reservation = reservationOf(id, input)
  const total = priceBooking(database, reservation)
  if (typeof total === 'string') return total
  const refusal =
    refusePayments(found, input.payment_methods, total) ??
    (fixed ? refuseRepeatedMethods(input.payment_methods) : undefined)
  if (refusal !== undefined) return refusal
  const user = database.change('users', input.user_id)
  takePayments(database, user, input.payment_methods)
  database.insert('reservations', id, reservation)
  database.listIn(user, 'reservations', 'append').push(id)
  return database.textOf(reservation)
}

/** The airline tool that books. */
export function airlineBooking(rules: { readonly fixed: boolean }): TauTool {
  return tauTool('book_reservation', BOOKING, (database, input) => book(database, input, rules))
}
