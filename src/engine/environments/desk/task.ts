import { z } from 'zod'
import { lateSchema } from '../late.ts'
import { ages, statuses, stocks } from './order.ts'
import { type Decision, decide, type Request, requestKinds } from './rules.ts'

function makeSchema() {
  const order = z.object({
    id: z.int(),
    customer: z.string(),
    item: z.string(),
    colour: z.string(),
    status: z.enum(statuses),
    age: z.enum(ages),
    stock: z.enum(stocks),
    street: z.string(),
  })
  const request = z.object({
    kind: z.enum(requestKinds),
    order: z.int(),
    value: z.string().optional(),
    /** What the customer says first. */
    words: z.string(),
  })
  return z
    .object({
      customer: z.string(),
      /** 1: the number is said at once; 2: when asked for; 3: never, only the name is known. */
      level: z.int().min(1).max(3),
      requests: z.array(request).min(1),
      orders: z.array(order).min(1),
      /** A hint that gives the answer away, for re-scoring; the policy never sees it. */
      oracle: z.string().optional(),
    })
    .refine(
      ({ requests, orders }) => requests.every(each => orders.some(({ id }) => id === each.order)),
      { error: 'every request must be about one of the orders' },
    )
}

/** The schema of the desk's task data. */
export const deskTask = lateSchema(makeSchema)

/** Task data of the desk. */
export type DeskTask = z.output<ReturnType<typeof makeSchema>>

/** A customer's request as a task has it. */
export type DeskRequest = DeskTask['requests'][number]

/** A decision as a hint says it. */
export function hintOf(decision: Decision): string {
  return decision.kind === 'refuse' ? `sorry, ${decision.reason}` : decision.kind
}

/** The decision that is right about a request of a task. */
export function rightDecision({ orders }: DeskTask, request: Request): Decision {
  return decide(request, orders.find(({ id }) => id === request.order)!)
}
