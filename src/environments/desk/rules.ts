import { ages, type Order, statuses, stocks } from './order.ts'

/** What customers want done. */
export const actionKinds = ['cancel', 'address', 'exchange', 'refund'] as const

/** What customers want to know. */
export const questionKinds = ['status', 'age', 'stock'] as const

/** Something to do, by what it is. */
export type ActionKind = (typeof actionKinds)[number]

/** Something to know: the field of an order that answers it. */
export type QuestionKind = (typeof questionKinds)[number]

/** What a customer can come with. */
export type RequestKind = ActionKind | QuestionKind

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
  | { readonly kind: 'tell'; readonly word: string }

/** Every word of an order that can be a reason or an answer, true or not. */
export const orderWords: ReadonlySet<string> = new Set([...statuses, ...ages, ...stocks])

/** The desk's policies, for policies that are told them. */
export const rulesText = [
  'You serve customers of a shop. Ask "which order?" where you need its number; somebody who does not know it gives a name, by which find knows their order. Look every order up before you decide or answer.',
  'A disputed order is for a person: call transfer and nothing else.',
  'Only a pending order is cancelled or sent to another street.',
  'Only a delivered order is exchanged or refunded. An old one is not refunded; one that is gone from the stock cannot be exchanged.',
  'When you have done what was asked, say "done". When you must refuse, say "sorry, " and the one word of the order that forbids it. When you were only asked something, say the one word that answers it.',
].join('\n')

/** What the rules say. At most one reason forbids a request in tasks that the desk makes. */
export function decide({ kind }: Pick<Request, 'kind'>, order: Order): Decision {
  if (isQuestion(kind)) return { kind: 'tell', word: order[kind] }
  const { status, age, stock } = order
  if (status === 'disputed') return { kind: 'transfer' }
  if (status !== wantedStatus(kind)) return { kind: 'refuse', reason: status }
  if (kind === 'refund' && age === 'old') return { kind: 'refuse', reason: age }
  if (kind === 'exchange' && stock === 'gone') return { kind: 'refuse', reason: stock }
  return { kind: 'act' }
}

/** Whether somebody only wants to know something. */
export function isQuestion(kind: RequestKind): kind is QuestionKind {
  return (questionKinds as readonly string[]).includes(kind)
}

/** The status in which an order must be for this to be done. */
export function wantedStatus(kind: ActionKind): 'pending' | 'delivered' {
  return kind === 'cancel' || kind === 'address' ? 'pending' : 'delivered'
}

/** What doing as asked makes of an order; an answer leaves it as it is. */
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
      return order
  }
}
