import { ages, type Order, statuses, stocks } from './order.ts'

/** The kinds of requests. */
export const requestKinds = ['cancel', 'address', 'exchange', 'refund'] as const

/** One of them. */
export type RequestKind = (typeof requestKinds)[number]

/** Something a customer wants. */
export interface Request {
  readonly kind: RequestKind
  readonly order: number
  /** The new street, or the colour wanted instead. */
  readonly value?: string | undefined
}

/** What is right to do about a request. */
export type Decision =
  | { readonly kind: 'act' }
  | { readonly kind: 'refuse'; readonly reason: string }
  | { readonly kind: 'transfer' }

/** Every word of an order that could be named as a reason, true or not. */
export const orderWords: ReadonlySet<string> = new Set([...statuses, ...ages, ...stocks])

/** The desk's rules, for policies that are shown them. */
export const rulesText = [
  'You serve customers of a shop. Ask "which order?" where you need its number; somebody who does not know it gives a name, by which find knows their order. Look every order up before you decide.',
  'A disputed order is for a person: call transfer and nothing else.',
  'Only a pending order is cancelled or sent to another street.',
  'Only a delivered order is exchanged or refunded. An old one is not refunded; one that is gone from the stock cannot be exchanged.',
  'When you have done what was asked, say "done". When you must refuse, say "sorry, " and the one word of the order that forbids it.',
].join('\n')

/** The decision by the rules. In tasks that the desk makes, at most one reason forbids a request. */
export function decide(
  { kind }: Pick<Request, 'kind'>,
  order: Pick<Order, 'status' | 'age' | 'stock'>,
): Decision {
  const { status, age, stock } = order
  if (status === 'disputed') return { kind: 'transfer' }
  if (status !== wantedStatus(kind)) return { kind: 'refuse', reason: status }
  if (kind === 'refund' && age === 'old') return { kind: 'refuse', reason: age }
  if (kind === 'exchange' && stock === 'gone') return { kind: 'refuse', reason: stock }
  return { kind: 'act' }
}

/** The status in which an order must be for this to be done. */
export function wantedStatus(kind: RequestKind): 'pending' | 'delivered' {
  return kind === 'cancel' || kind === 'address' ? 'pending' : 'delivered'
}

/** The order after the request was carried out. */
export function carryOut({ kind, value }: Request, order: Order): Order {
  switch (kind) {
    case 'cancel':
      return { ...order, status: 'cancelled' }
    case 'refund':
      return { ...order, status: 'refunded' }
    case 'address':
      return { ...order, street: value ?? order.street }
    case 'exchange':
      return { ...order, colour: value ?? order.colour }
    default:
      return kind satisfies never
  }
}
