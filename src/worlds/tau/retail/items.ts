import {
  compare,
  equals,
  type PythonDict,
  PythonError,
  PythonFloat,
  type PythonValue,
  str,
} from '@espalier/text/python'
import type { Database } from '../database.ts'
import {
  combine,
  countIn,
  hasKey,
  isInText,
  itemOf,
  iterate,
  lengthOf,
  negated,
  roundToCents,
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

/** Where the first item of that id stands in an order. */
function placeOf(items: readonly PythonValue[], id: PythonValue): number {
  const place = items.findIndex(item => equals(itemOf(item, 'item_id'), id))
  if (place < 0) throw new PythonError('IndexError', 'list index out of range')
  return place
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
  const items = iterate(itemOf(order, 'items'))
  let difference: PythonValue = 0
  for (const [id, newId] of pairsOf(swap)) {
    const item = items[placeOf(items, id)] as PythonValue
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
  // Upstream stores the unrounded result of the floating-point subtraction.
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
  database
    .listIn(order, 'payment_history', 'append')
    .push(transaction(type, absolute(difference), methodId))
  if (isGiftCard(itemOf(methodsOf(database, order), methodId))) {
    moveBalance(database, { order, id: methodId }, { sign: '-', amount: difference })
  }
  for (const [id, newId] of pairsOf(swap)) replaceItem(database, order, { id, newId })
  order.set('status', 'pending (item modified)')
  return database.textOf(order)
}

function replaceItem(
  database: Database,
  order: Row,
  { id, newId }: { readonly id: PythonValue; readonly newId: PythonValue },
): void {
  const items = database.listIn(order, 'items', 'append')
  const item = database.dictAt(items, placeOf(items, id))
  const variant = itemOf(variantsOf(database, item), newId)
  item.set('item_id', newId)
  item.set('price', itemOf(variant, 'price'))
  item.set('options', itemOf(variant, 'options'))
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
  return database.textOf(order)
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
  if (!isInText('gift_card', methodId as string) && !equals(methodId, originalMethod(found))) {
    return 'Error: payment method should be either the original payment method or a gift card'
  }
  if (findMissing(found, item_ids) !== undefined) return 'Error: some item not found'
  const order = database.change('orders', order_id)
  order.set('status', 'return requested')
  order.set('return_items', sortedList(item_ids))
  order.set('return_payment_method_id', methodId)
  return database.textOf(order)
}

function originalMethod(order: Row): PythonValue {
  return itemOf(firstOf(itemOf(order, 'payment_history')), 'payment_method_id')
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
