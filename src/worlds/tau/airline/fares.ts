import type { PythonDict, PythonValue } from '@espalier/text/python'
import { compare, equals, str } from '@espalier/text/python'
import type { Database } from '../database.ts'
import { combine, hasKey, itemOf, lengthOf } from '../operations.ts'
import type { Row } from '../tables.ts'

/** Who flies, in which cabin. */
export interface Party {
  readonly cabin: PythonValue
  readonly passengers: PythonValue
}

/** Puts price and airports on a booked flight and gives its fare, or the error to show. */
export function bookFlight(database: Database, flight: PythonValue, party: Party): PythonValue {
  const number = itemOf(flight, 'flight_number')
  const known = database.find('flights', number)
  if (known === undefined) return `Error: flight ${str(number)} not found`
  const date = itemOf(flight, 'date')
  const dates = itemOf(known, 'dates')
  if (!hasKey(dates as PythonDict, date)) {
    return `Error: flight ${str(number)} not found on date ${str(date)}`
  }
  const day = itemOf(dates, date)
  if (!equals(itemOf(day, 'status'), 'available')) {
    return `Error: flight ${str(number)} not available on date ${str(date)}`
  }
  const seats = itemOf(itemOf(day, 'available_seats'), party.cabin)
  if (compare('<', seats, lengthOf(party.passengers))) {
    return `Error: not enough seats on flight ${str(number)}`
  }
  const price = itemOf(itemOf(day, 'prices'), party.cabin)
  return stampFlight(flight, known, { price, passengers: party.passengers })
}

/** Writes price and airports on a flight and multiplies the price by the passengers. */
export function stampFlight(
  flight: PythonValue,
  source: PythonValue,
  { price, passengers }: { readonly price: PythonValue; readonly passengers: PythonValue },
): PythonValue {
  const origin = itemOf(source, 'origin')
  const destination = itemOf(source, 'destination')
  const booked = flight as PythonDict
  booked.set('price', price).set('origin', origin).set('destination', destination)
  return combine(price, '*', { right: lengthOf(passengers) })
}

/** The method that pays for a change of a reservation, or the error to show. */
export function methodFor(
  database: Database,
  { reservation, paymentId }: { readonly reservation: Row; readonly paymentId: PythonValue },
  total: PythonValue,
): PythonDict | string {
  const user = database.at('users', itemOf(reservation, 'user_id'))
  const methods = itemOf(user, 'payment_methods')
  if (!hasKey(methods as PythonDict, paymentId)) return 'Error: payment method not found'
  const method = itemOf(methods, paymentId)
  const source = itemOf(method, 'source')
  if (equals(source, 'certificate')) {
    return 'Error: certificate cannot be used to update reservation'
  }
  if (equals(source, 'gift_card') && compare('<', itemOf(method, 'amount'), total)) {
    return 'Error: gift card balance is not enough'
  }
  return method as PythonDict
}

/** Takes the total from the method if it is a gift card. */
export function chargeGiftCard(
  database: Database,
  { reservation, paymentId }: { readonly reservation: Row; readonly paymentId: PythonValue },
  total: PythonValue,
): void {
  const userId = itemOf(reservation, 'user_id')
  const source = itemOf(methodOf(database.at('users', userId), paymentId), 'source')
  if (!equals(source, 'gift_card')) return
  const user = database.change('users', userId)
  const method = database.dictIn(database.dictIn(user, 'payment_methods'), paymentId)
  const left = combine(itemOf(method, 'amount'), '-', { right: total, sign: '-=' })
  method.set('amount', left)
}

/** A payment method of a user; Python's `KeyError` if there is none. */
export function methodOf(user: Row, paymentId: PythonValue): PythonDict {
  return itemOf(itemOf(user, 'payment_methods'), paymentId) as PythonDict
}

/** An entry of a reservation's payment history. */
export function payment(paymentId: PythonValue, amount: PythonValue): PythonDict {
  const entry: PythonDict = new Map()
  return entry.set('payment_id', paymentId).set('amount', amount)
}
