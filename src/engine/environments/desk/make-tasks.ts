import type { MakeTasksOptions, Task } from '../../../base/core/environment.ts'
import type { TaskId } from '../../../base/core/ids.ts'
import { pick, type Random, random, randomAt, seedOf } from '../../../base/math/random.ts'
import { ages, type Order, stocks } from './order.ts'
import { decide, type RequestKind, requestKinds, wantedStatus } from './rules.ts'
import { type DeskRequest, type DeskTask, hintOf } from './task.ts'

/** Which tasks a desk makes. */
export interface DeskTaskOptions {
  readonly level: 1 | 2 | 3 | 'mixed'
  /** Requests per task: at least, at most. */
  readonly requests: readonly [number, number]
}

const names = 'Ann Ben Cid Dee Eve Fay Gus Hal Ida Jon Kim Leo May Ned Ola Pam'.split(' ')
const items = 'lamp mug chair clock kettle radio scarf tent vase watch boots drum'.split(' ')
const colours = 'red blue green black white brown'.split(' ')
const streets = 'elm oak ash bay hill lake mill park pine rose vine west'.split(' ')

/** Ways to say what is wanted; `order` and `value` are filled in. */
const phrases: Readonly<Record<RequestKind, readonly string[]>> = {
  cancel: ['cancel ORDER', 'stop ORDER'],
  address: ['ship ORDER to "VALUE"', 'send ORDER to "VALUE"'],
  exchange: ['exchange ORDER for "VALUE"', 'swap ORDER for "VALUE"'],
  refund: ['refund ORDER', 'return ORDER'],
}

/** The split of a task depends on its content, so that no seed puts one into both splits. */
const heldOutShare = 0.25

/** Makes tasks; all of one call differ, and none is ever in both splits. */
export function makeDeskTasks(
  { count, seed, split = 'train' }: MakeTasksOptions,
  options: DeskTaskOptions,
): readonly Task<DeskTask>[] {
  const seen = new Set<string>()
  const tasks: Task<DeskTask>[] = []
  for (let attempt = 0; tasks.length < count; attempt++) {
    if (attempt > 20 * count + 1000) {
      throw new RangeError(`the desk has no ${count} distinct tasks with these options`)
    }
    const data = drawTask(random(seedOf(seed, 'desk', split, attempt)), options)
    const key = JSON.stringify(data)
    const isHeldOut = randomAt(seedOf('desk split', key), 0) < heldOutShare
    if (isHeldOut !== (split === 'held-out') || seen.has(key)) continue
    seen.add(key)
    tasks.push({ id: `desk/${split}/${tasks.length}` as TaskId, data })
  }
  return tasks
}

function drawTask(draw: Random, options: DeskTaskOptions): DeskTask {
  const [least, most] = options.requests
  const level = options.level === 'mixed' ? drawLevel(draw, most > 1 ? 2 : 3) : options.level
  const wanted = least + Math.floor(draw() * (most - least + 1))
  const customer = pick(names, draw)
  const ids = drawDistinct(wanted + 2, () => 10 + Math.floor(draw() * 90))
  const others = drawDistinct(2, () => pick(names, draw), customer)
  const drawn = ids.slice(0, wanted).map(id => drawRequest(id, customer, { draw, level }))
  const strangers = ids
    .slice(wanted)
    .map((id, index) => drawOrder('cancel', { id, customer: others[index]!, draw }))
  const requests = drawn.map(({ request }) => request)
  const orders = [...drawn.map(each => each.order), ...strangers].sort((a, b) => a.id - b.id)
  const oracle = drawn.map(({ request, order }) => hintOf(decide(request, order))).join('; ')
  return { customer, level, requests, orders, oracle }
}

/** A name identifies an order only if the customer has no other. */
function drawLevel(draw: Random, most: 2 | 3): 1 | 2 | 3 {
  const chance = draw()
  return chance < 0.4 ? 1 : chance < 0.8 ? 2 : most
}

function drawDistinct<T>(count: number, next: () => T, not?: T): readonly T[] {
  const found = new Set<T>()
  while (found.size < count) {
    const value = next()
    if (value !== not) found.add(value)
  }
  return [...found]
}

function drawRequest(
  id: number,
  customer: string,
  { draw, level }: { readonly draw: Random; readonly level: number },
): { readonly request: DeskRequest; readonly order: Order } {
  const kind = pick(requestKinds, draw)
  const order = drawOrder(kind, { id, customer, draw })
  const value =
    kind === 'address'
      ? pickOther(streets, order.street, draw)
      : kind === 'exchange'
        ? pickOther(colours, order.colour, draw)
        : undefined
  const words = pick(phrases[kind], draw)
    .replace('ORDER', level === 1 ? `#${id}` : 'my order')
    .replace('VALUE', value ?? '')
  return { request: { kind, order: id, ...(value !== undefined && { value }), words }, order }
}

/** Never asks for what the order already has: doing nothing would then be right. */
function pickOther(words: readonly string[], not: string, draw: Random): string {
  return pick(
    words.filter(word => word !== not),
    draw,
  )
}

function drawOrder(
  kind: RequestKind,
  { id, customer, draw }: { readonly id: number; readonly customer: string; readonly draw: Random },
): Order {
  return {
    id,
    customer,
    item: pick(items, draw),
    colour: pick(colours, draw),
    ...drawCase(kind, draw),
    street: pick(streets, draw),
  }
}

/** Draws the facts of an order: at most one of them forbids the request. */
function drawCase(kind: RequestKind, draw: Random): Pick<Order, 'status' | 'age' | 'stock'> {
  const facts = { age: pick(ages, draw), stock: pick(stocks, draw) }
  const wanted = wantedStatus(kind)
  const found = pick(answersTo(kind), draw)
  if (found === 'transfer') return { ...facts, status: 'disputed' }
  const fine = kind === 'refund' ? ({ age: 'new' } as const) : ({ stock: 'stocked' } as const)
  if (found === 'status') return { ...facts, ...fine, status: pick(others[wanted], draw) }
  if (found === 'act') return { ...facts, ...fine, status: wanted }
  return { ...facts, ...(kind === 'refund' ? { age: 'old' } : { stock: 'gone' }), status: wanted }
}

/**
 * The right answers, by the status that a request needs, repeated by frequency: no fixed answer pays
 * much. Acting is right more often than refusing, as policies would otherwise forget how to act
 * before they learn to read.
 */
const answers = {
  pending: ['act', 'transfer', 'status'],
  delivered: ['act', 'act', 'act', 'act', 'act', 'transfer', 'status', 'status', 'field', 'field'],
} as const

/** What can be right about something to do, each as often as it is right. */
export function answersTo(kind: RequestKind): readonly ('act' | 'transfer' | 'status' | 'field')[] {
  return answers[wantedStatus(kind)]
}

/** Statuses that forbid a request. */
const others = { pending: ['shipped', 'delivered'], delivered: ['pending', 'shipped'] } as const
