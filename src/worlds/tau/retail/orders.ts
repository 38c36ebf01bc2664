import type { PythonDict, PythonValue } from '@espalier/text/python'
import { compare, equals, PythonError } from '@espalier/text/python'
import type { Database } from '../database.ts'
import { combine, itemOf, roundToCents } from '../operations.ts'
import type { Row } from '../tables.ts'

/** The order of that id if it is in the wanted status, else the error to show. */
export function findOrder(
  database: Database,
  id: PythonValue,
  wanted: { readonly status: string; readonly otherwise: string },
): Row | string {
  const order = database.find('orders', id)
  if (order === undefined) return 'Error: order not found'
  return equals(itemOf(order, 'status'), wanted.status) ? order : wanted.otherwise
}

/** The payment methods of the user who placed the order. */
export function methodsOf(database: Database, order: Row): PythonValue {
  return itemOf(database.at('users', itemOf(order, 'user_id')), 'payment_methods')
}

/** Python's `list[0]`. */
export function firstOf(list: PythonValue): PythonValue {
  const [first] = list as readonly PythonValue[]
  if (first === undefined) throw new PythonError('IndexError', 'list index out of range')
  return first
}

/** Whether the method is a gift card that holds less than the amount. */
export function isShort(method: PythonValue, amount: PythonValue): boolean {
  return isGiftCard(method) && compare('<', itemOf(method, 'balance'), amount)
}

/** Whether the payment method is a gift card, by its source. */
export function isGiftCard(method: PythonValue): boolean {
  return equals(itemOf(method, 'source'), 'gift_card')
}

/** Adds to (or takes from) a gift card of the user who placed the order. */
export function moveBalance(
  database: Database,
  card: { readonly order: Row; readonly id: PythonValue },
  { sign, amount }: { readonly sign: '+' | '-'; readonly amount: PythonValue },
): void {
  const userId = itemOf(card.order, 'user_id')
  itemOf(methodsOf(database, card.order), card.id)
  const user = database.change('users', userId)
  const method = database.dictIn(database.dictIn(user, 'payment_methods'), card.id)
  const balance = combine(itemOf(method, 'balance'), sign, { right: amount, sign: `${sign}=` })
  method.set('balance', roundToCents(balance))
}

/** An entry of an order's payment history. */
export function transaction(
  type: 'payment' | 'refund',
  amount: PythonValue,
  methodId: PythonValue,
): PythonDict {
  const entry: PythonDict = new Map()
  return entry
    .set('transaction_type', type)
    .set('amount', amount)
    .set('payment_method_id', methodId)
}
