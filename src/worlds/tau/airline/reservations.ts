import type { PythonDict, PythonValue } from '@espalier/text/python'
import { compare, equals, str } from '@espalier/text/python'
import type { Database } from '../database.ts'
import { combine, copy, hasKey, itemOf, iterate, lengthOf, negated, sumOf } from '../operations.ts'
import type { Row } from '../tables.ts'
import { type Input, type TauTool, tauTool } from '../tool.ts'
import { bookFlight, chargeGiftCard, methodFor, payment, stampFlight } from './fares.ts'

interface Rules {
  readonly fixed: boolean
}

const NO_RESERVATION = 'Error: reservation not found'

function getUser(database: Database, { user_id }: Input<'user_id'>): PythonValue {
  const user = database.find('users', user_id)
  return user === undefined ? 'Error: user not found' : database.textOf(user)
}

function getReservation(
  database: Database,
  { reservation_id: id }: Input<'reservation_id'>,
  { fixed }: Rules,
): PythonValue {
  const found = database.find('reservations', id)
  if (found !== undefined) return database.textOf(found)
  return fixed ? NO_RESERVATION : 'Error: user not found'
}

function cancel(
  database: Database,
  { reservation_id: id }: Input<'reservation_id'>,
  { fixed }: Rules,
): PythonValue {
  const found = database.find('reservations', id)
  if (found === undefined) return NO_RESERVATION
  if (fixed && found.has('status')) return 'Error: reservation is already cancelled'
  const refunds = iterate(itemOf(found, 'payment_history')).map(entry =>
    payment(itemOf(entry, 'payment_id'), negated(itemOf(entry, 'amount'))),
  )
  const reservation = database.change('reservations', id)
  database.listIn(reservation, 'payment_history', 'extend').push(...refunds)
  reservation.set('status', 'cancelled')
  if (fixed) refundGiftCards(database, reservation, refunds)
  return database.textOf(reservation)
}

/** Upstream writes the refund in the history but leaves the gift card as it was. */
function refundGiftCards(
  database: Database,
  reservation: Row,
  refunds: readonly PythonValue[],
): void {
  const user = database.at('users', itemOf(reservation, 'user_id'))
  for (const refund of refunds) {
    const paymentId = itemOf(refund, 'payment_id')
    // A certificate is spent with its first use and does not come back.
    if (!hasKey(itemOf(user, 'payment_methods') as PythonDict, paymentId)) continue
    chargeGiftCard(database, { reservation, paymentId }, itemOf(refund, 'amount'))
  }
}

type Baggage = Input<'reservation_id' | 'total_baggages' | 'nonfree_baggages' | 'payment_id'>

const BAGGAGE = ['reservation_id', 'total_baggages', 'nonfree_baggages', 'payment_id'] as const

function updateBaggage(database: Database, input: Baggage): PythonValue {
  const { reservation_id: id, nonfree_baggages: nonfree, payment_id: paymentId } = input
  const found = database.find('reservations', id)
  if (found === undefined) return NO_RESERVATION
  const added = combine(nonfree, '-', { right: itemOf(found, 'nonfree_baggages') })
  const total = combine(50, '*', { right: compare('>', added, 0) ? added : 0 })
  const method = methodFor(database, { reservation: found, paymentId }, total)
  if (typeof method === 'string') return method
  const reservation = database.change('reservations', id)
  reservation.set('total_baggages', input.total_baggages)
  reservation.set('nonfree_baggages', nonfree)
  settle(database, { reservation, paymentId }, total)
  return database.textOf(reservation)
}

interface Charge {
  readonly reservation: Row
  readonly paymentId: PythonValue
}

/** Charges a gift card, then notes the payment unless nothing was due. */
function settle(database: Database, charge: Charge, total: PythonValue): void {
  chargeGiftCard(database, charge, total)
  notePayment(database, charge, total)
}

function notePayment(
  database: Database,
  { reservation, paymentId }: Charge,
  total: PythonValue,
): void {
  if (equals(total, 0)) return
  database.listIn(reservation, 'payment_history', 'append').push(payment(paymentId, total))
}

type Rebooking = Input<'reservation_id' | 'cabin' | 'flights' | 'payment_id'>

const REBOOKING = ['reservation_id', 'cabin', 'flights', 'payment_id'] as const

function updateFlights(database: Database, input: Rebooking, { fixed }: Rules): PythonValue {
  const { reservation_id: id, cabin, payment_id: paymentId } = input
  const found = database.find('reservations', id)
  if (found === undefined) return NO_RESERVATION
  const flights = copy(input.flights)
  const total = priceRebooking(database, found, { cabin, flights })
  if (typeof total === 'string') return total
  const method = methodFor(database, { reservation: found, paymentId }, total)
  if (typeof method === 'string') return method
  const reservation = database.change('reservations', id)
  chargeGiftCard(database, { reservation, paymentId }, total)
  reservation.set('flights', flights)
  // Upstream charges for the new cabin but keeps the old one on the reservation.
  if (fixed) reservation.set('cabin', cabin)
  notePayment(database, { reservation, paymentId }, total)
  return database.textOf(reservation)
}

/** What the new flights cost more than the old ones, or the error to show. */
function priceRebooking(
  database: Database,
  reservation: Row,
  { cabin, flights }: { readonly cabin: PythonValue; readonly flights: PythonValue },
): PythonValue {
  const passengers = itemOf(reservation, 'passengers')
  let total: PythonValue = 0
  for (const flight of iterate(flights)) {
    const kept = keptFlight(reservation, flight, cabin)
    const fare = kept
      ? stampFlight(flight, kept, { price: itemOf(kept, 'price'), passengers })
      : bookFlight(database, flight, { cabin, passengers })
    if (typeof fare === 'string') return fare
    total = combine(total, '+', { right: fare, sign: '+=' })
  }
  const paid = sumOf(iterate(itemOf(reservation, 'flights')).map(old => itemOf(old, 'price')))
  const before = combine(paid, '*', { right: lengthOf(passengers) })
  return combine(total, '-', { right: before, sign: '-=' })
}

/** The booked flight of the same number, date and cabin, which keeps its price. */
function keptFlight(
  reservation: Row,
  flight: PythonValue,
  cabin: PythonValue,
): PythonValue | undefined {
  const booked = iterate(itemOf(reservation, 'flights'))
  let kept: PythonValue | undefined
  for (const old of booked) {
    const isKept =
      equals(itemOf(old, 'flight_number'), itemOf(flight, 'flight_number')) &&
      equals(itemOf(old, 'date'), itemOf(flight, 'date')) &&
      equals(cabin, itemOf(reservation, 'cabin'))
    // Python looks at all of them, so a missing key is noticed even after a match.
    if (isKept) kept ??= old
  }
  return kept
}

function updatePassengers(
  database: Database,
  { reservation_id: id, passengers }: Input<'reservation_id' | 'passengers'>,
): PythonValue {
  const found = database.find('reservations', id)
  if (found === undefined) return NO_RESERVATION
  if (lengthOf(passengers) !== lengthOf(itemOf(found, 'passengers'))) {
    return 'Error: number of passengers does not match'
  }
  const reservation = database.change('reservations', id)
  reservation.set('passengers', passengers)
  return database.textOf(reservation)
}

const CERTIFICATES = [3221322, 3221323, 3221324]

function sendCertificate(
  database: Database,
  { user_id, amount }: Input<'user_id' | 'amount'>,
  { fixed }: Rules,
): PythonValue {
  const found = database.find('users', user_id)
  if (found === undefined) return 'Error: user not found'
  const methods = itemOf(found, 'payment_methods') as PythonDict
  let number = CERTIFICATES.find(candidate => !methods.has(`certificate_${candidate}`))
  // Upstream answers nothing once its three numbers are taken, which breaks the step.
  if (number === undefined && !fixed) return null
  number ??= CERTIFICATES.at(-1) as number
  while (methods.has(`certificate_${number}`)) number++
  const id = `certificate_${number}`
  const certificate: PythonDict = new Map()
  certificate.set('source', 'certificate').set('amount', amount).set('id', id)
  const user = database.change('users', user_id)
  database.dictIn(user, 'payment_methods').set(id, certificate)
  return `Certificate ${id} added to user ${str(user_id)} with amount ${str(amount)}.`
}

/** The airline tools on users and reservations, other than booking. */
export function airlineReservations(rules: Rules): readonly TauTool[] {
  return [
    tauTool('cancel_reservation', ['reservation_id'], (database, input) =>
      cancel(database, input, rules),
    ),
    tauTool('get_reservation_details', ['reservation_id'], (database, input) =>
      getReservation(database, input, rules),
    ),
    tauTool('get_user_details', ['user_id'], getUser),
    tauTool('send_certificate', ['user_id', 'amount'], (database, input) =>
      sendCertificate(database, input, rules),
    ),
    tauTool('update_reservation_baggages', BAGGAGE, updateBaggage),
    tauTool('update_reservation_flights', REBOOKING, (database, input) =>
      updateFlights(database, input, rules),
    ),
    tauTool('update_reservation_passengers', ['reservation_id', 'passengers'], updatePassengers),
  ]
}
