/** The status of an order; the desk itself sets the last two. */
export const statuses = [
  'pending',
  'shipped',
  'delivered',
  'disputed',
  'cancelled',
  'refunded',
] as const

/** Whether an order is young enough to be sent back. */
export const ages = ['new', 'old'] as const

/** Whether the shop still has what could replace it. */
export const stocks = ['stocked', 'gone'] as const

/** An order in the desk's database. */
export interface Order {
  readonly id: number
  readonly customer: string
  readonly item: string
  readonly colour: string
  readonly status: (typeof statuses)[number]
  readonly age: (typeof ages)[number]
  readonly stock: (typeof stocks)[number]
  readonly street: string
}

/** The orders of a desk by their number; an order is replaced, never changed. */
export type Database = Map<number, Order>

/** What a look-up shows: the values alone, since no value occurs in two fields. */
export function describeOrder({ item, status, age, stock }: Order): string {
  return `${item} ${status} ${age} ${stock}`
}

/** What differs between two states of a database, as `number.field` and the new value. */
export function changesBetween(
  before: ReadonlyMap<number, Order>,
  after: ReadonlyMap<number, Order>,
): Readonly<Record<string, string>> {
  const changes: Record<string, string> = {}
  for (const [id, order] of after) {
    const old = before.get(id)!
    if (old === order) continue
    for (const field of ['colour', 'status', 'street'] as const) {
      if (old[field] !== order[field]) changes[`${id}.${field}`] = order[field]
    }
  }
  return changes
}
