import {
  compare,
  equals,
  type PythonDict,
  PythonFloat,
  type PythonValue,
} from '@espalier/text/python'
import type { Database } from '../database.ts'
import {
  combine,
  hasKey,
  isInText,
  itemOf,
  iterate,
  lengthOf,
  roundToCents,
} from '../operations.ts'
import type { Row } from '../tables.ts'
import { type Input, type TauTool, tauTool } from '../tool.ts'
import {
  findOrder,
  firstOf,
  isGiftCard,
  isShort,
  methodsOf,
  moveBalance,
  transaction,
} from './orders.ts'

const REASONS: readonly PythonValue[] = ['no longer needed', 'ordered by mistake']

function cancelOrder(
  database: Database,
  { order_id, reason }: Input<'order_id' | 'reason'>,
  { fixed }: { readonly fixed: boolean },
): PythonValue {
  const found = findOrder(database, order_id, {
    status: 'pending',
    otherwise: 'Error: non-pending order cannot be cancelled',
  })
  if (typeof found === 'string') return found
  if (!REASONS.some(known => equals(known, reason))) return 'Error: invalid reason'
  const paid = iterate(itemOf(found, 'payment_history'))
  const refunds: PythonValue[] = []
  for (const payment of fixed ? stillPaid(paid) : paid) {
    const methodId = itemOf(payment, 'payment_method_id')
    const amount = itemOf(payment, 'amount')
    refunds.push(transaction('refund', amount, methodId))
    if (isInText('gift_card', methodId as string)) {
      moveBalance(database, { order: found, id: methodId }, { sign: '+', amount })
    }
  }
  const order = database.change('orders', order_id)
  order.set('status', 'cancelled')
  order.set('cancel_reason', reason)
  database.listIn(order, 'payment_history', 'extend').push(...refunds)
  return database.textOf(order)
}

/** What each payment method still has in the order; upstream gives refunds back as well. */
function stillPaid(history: readonly PythonValue[]): readonly PythonValue[] {
  const nets = new Map<PythonValue, PythonValue>()
  for (const entry of history) {
    const methodId = itemOf(entry, 'payment_method_id')
    const sign = equals(itemOf(entry, 'transaction_type'), 'payment') ? '+' : '-'
    const net = combine(nets.get(methodId) ?? new PythonFloat(0), sign, {
      right: itemOf(entry, 'amount'),
    })
    nets.set(methodId, roundToCents(net))
  }
  return [...nets]
    .filter(([, net]) => compare('>', net, 0))
    .map(([methodId, net]) => transaction('payment', net, methodId))
}

function refusePayment(database: Database, order: Row, methodId: PythonValue): string | undefined {
  const methods = methodsOf(database, order)
  if (!hasKey(methods as Row, methodId)) return 'Error: payment method not found'
  const history = itemOf(order, 'payment_history')
  const only = lengthOf(history) > 1 ? undefined : firstOf(history)
  if (only === undefined || !equals(itemOf(only, 'transaction_type'), 'payment')) {
    return 'Error: there should be exactly one payment for a pending order'
  }
  if (equals(itemOf(only, 'payment_method_id'), methodId)) {
    return 'Error: the new payment method should be different from the current one'
  }
  return isShort(itemOf(methods, methodId), itemOf(only, 'amount'))
    ? 'Error: insufficient gift card balance to pay for the order'
    : undefined
}

function changePayment(
  database: Database,
  { order_id, payment_method_id: newId }: Input<'order_id' | 'payment_method_id'>,
): PythonValue {
  const found = findOrder(database, order_id, {
    status: 'pending',
    otherwise: 'Error: non-pending order cannot be modified',
  })
  if (typeof found === 'string') return found
  const refusal = refusePayment(database, found, newId)
  if (refusal !== undefined) return refusal
  const order = database.change('orders', order_id)
  const history = itemOf(order, 'payment_history')
  const amount = itemOf(firstOf(history), 'amount')
  const oldId = itemOf(firstOf(history), 'payment_method_id')
  database
    .listIn(order, 'payment_history', 'extend')
    .push(transaction('payment', amount, newId), transaction('refund', amount, oldId))
  if (isGiftCard(itemOf(methodsOf(database, order), newId))) {
    moveBalance(database, { order, id: newId }, { sign: '-', amount })
  }
  if (isInText('gift_card', oldId as string)) {
    moveBalance(database, { order, id: oldId }, { sign: '+', amount })
  }
  return database.textOf(order)
}

const ADDRESS = ['address1', 'address2', 'city', 'state', 'country', 'zip'] as const

function addressOf(input: Input): PythonValue {
  const address: PythonDict = new Map()
  for (const field of ADDRESS) address.set(field, input[field] as PythonValue)
  return address
}

function changeOrderAddress(database: Database, input: Input): PythonValue {
  const id = input.order_id as PythonValue
  const found = findOrder(database, id, {
    status: 'pending',
    otherwise: 'Error: non-pending order cannot be modified',
  })
  if (typeof found === 'string') return found
  const order = database.change('orders', id)
  order.set('address', addressOf(input))
  return database.textOf(order)
}

function changeUserAddress(database: Database, input: Input): PythonValue {
  const id = input.user_id as PythonValue
  if (database.find('users', id) === undefined) return 'Error: user not found'
  const user = database.change('users', id)
  user.set('address', addressOf(input))
  return database.textOf(user)
}

/** The retail tools that cancel, pay anew and re-address. */
export function retailPayments(rules: { readonly fixed: boolean }): readonly TauTool[] {
  return [
    tauTool('cancel_pending_order', ['order_id', 'reason'], (database, input) =>
      cancelOrder(database, input, rules),
    ),
    tauTool('modify_pending_order_address', ['order_id', ...ADDRESS], changeOrderAddress),
    tauTool('modify_pending_order_payment', ['order_id', 'payment_method_id'], changePayment),
    tauTool('modify_user_address', ['user_id', ...ADDRESS], changeUserAddress),
  ]
}
