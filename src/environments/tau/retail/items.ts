import { compare, equals } from '../../../python/compare.ts'
import { PythonError } from '../../../python/error.ts'
import { str } from '../../../python/repr.ts'
import { type PythonDict, PythonFloat, type PythonValue } from '../../../python/value.ts'
import type { Database } from '../database.ts'
import {
  combine,
  countIn,
  hasKey,
  isInText,
  itemOf,
  iterate,
  lengthOf,
  listToChange,
  negated,
  roundToCents,
  setItem,
  sortedList,
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

type Swap = Input<'order_id' | 'item_ids' | 'new_item_ids' | 'payment_method_id'>

const SWAP = ['order_id', 'item_ids', 'new_item_ids', 'payment_method_id'] as const

/** The first id asked for more often than the order has it. */
function findMissing(order: Row, wanted: PythonValue): { readonly id: PythonValue } | undefined {
  const present = iterate(itemOf(order, 'items')).map(item => itemOf(item, 'item_id'))
  for (const id of iterate(wanted)) {
    if (countIn(wanted, id) > countIn(present, id)) return { id }
  }
  return undefined
}

function firstItem(order: Row, id: PythonValue): PythonValue {
  const items = iterate(itemOf(order, 'items'))
  const found = items.find(item => equals(itemOf(item, 'item_id'), id))
  if (found === undefined) throw new PythonError('IndexError', 'list index out of range')
  return found
}

function variantsOf(database: Database, item: PythonValue): PythonValue {
  return itemOf(database.at('products', itemOf(item, 'product_id')), 'variants')
}

function pairsOf({ item_ids, new_item_ids }: Swap): (readonly [PythonValue, PythonValue])[] {
  const replacements = iterate(new_item_ids)
  return iterate(item_ids).map((id, index) => [id, replacements[index] as PythonValue])
}

/** What the new items cost more than the old ones, or the error to show. */
function priceSwap(database: Database, order: Row, swap: Swap): PythonValue {
  const missing = findMissing(order, swap.item_ids)
  if (missing !== undefined) return `Error: ${str(missing.id)} not found`
  if (lengthOf(swap.item_ids) !== lengthOf(swap.new_item_ids)) {
    return 'Error: the number of items to be exchanged should match'
  }
  let difference: PythonValue = 0
  for (const [id, newId] of pairsOf(swap)) {
    const item = firstItem(order, id)
    const variants = variantsOf(database, item)
    if (!hasKey(variants as Row, newId) || !itemOf(itemOf(variants, newId), 'available')) {
      return `Error: new item ${str(newId)} not found or available`
    }
    const price = itemOf(itemOf(variants, newId), 'price')
    const change = combine(price, '-', { right: itemOf(item, 'price') })
    difference = combine(difference, '+', { right: change })
  }
  return difference
}

function refuseMethod(
  database: Database,
  { order, difference, purpose }: { order: Row; difference: PythonValue; purpose: string },
  methodId: PythonValue,
): string | undefined {
  const methods = methodsOf(database, order)
  if (!hasKey(methods as Row, methodId)) return 'Error: payment method not found'
  return isShort(itemOf(methods, methodId), difference)
    ? `Error: insufficient gift card balance to pay for the ${purpose}`
    : undefined
}

const absolute = (value: PythonValue): PythonValue =>
  value instanceof PythonFloat
    ? new PythonFloat(Math.abs(value.value))
    : compare('<', value, 0)
      ? negated(value)
      : value

function modifyItems(
  database: Database,
  swap: Swap,
  { fixed }: { readonly fixed: boolean },
): PythonValue {
  const found = findOrder(database, swap.order_id, {
    status: 'pending',
    otherwise: 'Error: non-pending order cannot be modified',
  })
  if (typeof found === 'string') return found
  const priced = priceSwap(database, found, swap)
  if (typeof priced === 'string') return priced
  // Upstream leaves the binary dust of the subtraction in the database.
  const difference = fixed ? roundToCents(priced) : priced
  const methodId = swap.payment_method_id
  const refusal = refuseMethod(
    database,
    { order: found, difference, purpose: 'new item' },
    methodId,
  )
  if (refusal !== undefined) return refusal
  const order = database.change('orders', swap.order_id)
  const type = compare('>', difference, 0) ? 'payment' : 'refund'
  listToChange(itemOf(order, 'payment_history'), 'append').push(
    transaction(type, absolute(difference), methodId),
  )
  if (isGiftCard(itemOf(methodsOf(database, order), methodId))) {
    moveBalance(database, { order, id: methodId }, { sign: '-', amount: difference })
  }
  for (const [id, newId] of pairsOf(swap)) replaceItem(database, firstItem(order, id), newId)
  order.set('status', 'pending (item modified)')
  return database.textOf('orders', swap.order_id as string)
}

function replaceItem(database: Database, item: PythonValue, newId: PythonValue): void {
  setItem(item, 'item_id', newId)
  const variant = itemOf(variantsOf(database, item), newId)
  setItem(item, 'price', itemOf(variant, 'price'))
  setItem(item, 'options', itemOf(variant, 'options'))
}

function exchangeItems(database: Database, swap: Swap): PythonValue {
  const found = findOrder(database, swap.order_id, {
    status: 'delivered',
    otherwise: 'Error: non-delivered order cannot be exchanged',
  })
  if (typeof found === 'string') return found
  const priced = priceSwap(database, found, swap)
  if (typeof priced === 'string') return priced
  const difference = roundToCents(priced)
  const methodId = swap.payment_method_id
  const purpose = 'price difference'
  const refusal = refuseMethod(database, { order: found, difference, purpose }, methodId)
  if (refusal !== undefined) return refusal
  const order: PythonDict = database.change('orders', swap.order_id)
  order.set('status', 'exchange requested')
  order.set('exchange_items', sortedList(swap.item_ids))
  order.set('exchange_new_items', sortedList(swap.new_item_ids))
  order.set('exchange_payment_method_id', methodId)
  order.set('exchange_price_difference', difference)
  return database.textOf('orders', swap.order_id as string)
}

type Return = Input<'order_id' | 'item_ids' | 'payment_method_id'>

function returnItems(
  database: Database,
  { order_id, item_ids, payment_method_id: methodId }: Return,
): PythonValue {
  const found = findOrder(database, order_id, {
    status: 'delivered',
    otherwise: 'Error: non-delivered order cannot be returned',
  })
  if (typeof found === 'string') return found
  if (!hasKey(methodsOf(database, found) as Row, methodId)) {
    return 'Error: payment method not found'
  }
  const original = (): PythonValue =>
    itemOf(firstOf(itemOf(found, 'payment_history')), 'payment_method_id')
  if (!isInText('gift_card', methodId as string) && !equals(methodId, original())) {
    return 'Error: payment method should be either the original payment method or a gift card'
  }
  if (findMissing(found, item_ids) !== undefined) return 'Error: some item not found'
  const order = database.change('orders', order_id)
  order.set('status', 'return requested')
  order.set('return_items', sortedList(item_ids))
  order.set('return_payment_method_id', methodId)
  return database.textOf('orders', order_id as string)
}

/** The retail tools that swap and take back items. */
export function retailItems(rules: { readonly fixed: boolean }): readonly TauTool[] {
  return [
    tauTool('modify_pending_order_items', SWAP, (database, input) =>
      modifyItems(database, input, rules),
    ),
    tauTool('exchange_delivered_order_items', SWAP, exchangeItems),
    tauTool(
      'return_delivered_order_items',
      ['order_id', 'item_ids', 'payment_method_id'],
      returnItems,
    ),
  ]
}
