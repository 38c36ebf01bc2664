import { z } from 'zod'
import type { Environment } from '../../../base/core/environment.ts'
import { environment } from '../environment.ts'
import { late } from '../late.ts'
import type { WorldBehaviour } from '../opened-world.ts'
import { tool } from '../tools/tool.ts'
import { type DeskTaskOptions, makeDeskTasks } from './make-tasks.ts'
import { changesBetween, type Database, describeOrder, type Order } from './order.ts'
import { carryOut, type RequestKind, rulesText } from './rules.ts'
import { understand } from './speech.ts'
import { type DeskTask, deskTask, rightDecision } from './task.ts'

/** What kind of desk to open. */
export interface DeskOptions {
  /** How much the customer says unasked. @default 'mixed' */
  readonly level?: DeskTaskOptions['level']
  /** One request, or one customer with many. @default 'short' */
  readonly length?: 'short' | 'long'
  /** Whether the policy is told the rules or has to find them out. @default 'hidden' */
  readonly rules?: 'hidden' | 'told'
}

/** One request as it was left: what was said last, and what had changed in the database. */
export interface ClosedRequest {
  readonly said: string
  readonly isTransferred: boolean
  /** By `number.field`; only what changed since the request was made. */
  readonly changes: Readonly<Record<string, string>>
}

/** A desk's report of its final state. */
export interface DeskReport {
  readonly closed: readonly ClosedRequest[]
}

const lengths = { short: [1, 1], long: [7, 9] } as const

/**
 * A service desk: a customer wants something done about an order, tools show and change the
 * database, and rules that the policy may not know say whether to act, to refuse naming the one
 * true reason, or to hand over. Rewarded by the database and by what was said.
 */
export function desk(options: DeskOptions = {}): Environment<DeskTask> {
  const { level = 'mixed', length = 'short', rules = 'hidden' } = options
  if (length === 'long' && level === 3) {
    throw new RangeError(
      'A long desk has no level 3: a name does not tell which of several orders is meant.',
    )
  }
  return environment({
    name: 'desk',
    task: deskTask,
    open({ data }) {
      const told = rules === 'told' ? [{ role: 'system', content: rulesText } as const] : []
      const opening = [...told, { role: 'user', content: data.requests[0]!.words } as const]
      return { opening, ...behaviourOf(data, makeState(data)) }
    },
    reward: {
      right: ({ task: { data }, report }) =>
        data.requests.filter((_, index) => isRight(data, index, report.closed[index])).length /
        data.requests.length,
    },
    makeTasks: call => makeDeskTasks(call, { level, requests: lengths[length] }),
    splits: ['train', 'held-out'],
  })
}

/** The state of a desk; copied when a world forks. */
interface DeskState {
  orders: Database
  /** The database when the open request was made. */
  before: ReadonlyMap<number, Order>
  readonly closed: ClosedRequest[]
  isTransferred: boolean
  /** How many more useless answers the customer accepts before leaving. */
  patience: number
}

function makeState({ orders }: DeskTask): DeskState {
  const database = new Map(orders.map(order => [order.id, order]))
  return {
    orders: database,
    before: new Map(database),
    closed: [],
    isTransferred: false,
    patience: 3,
  }
}

function behaviourOf(data: DeskTask, state: DeskState): WorldBehaviour<DeskReport> {
  return {
    tools: toolsOf(state),
    respond: text => answer(data, state, text),
    isOver: () => isOver(data, state),
    report: () => ({ closed: reported(state) }),
    anchor: () => JSON.stringify([state.closed.length, changesBetween(state.before, state.orders)]),
    fork: () =>
      behaviourOf(data, { ...state, orders: new Map(state.orders), closed: [...state.closed] }),
  }
}

/** Whether the customer is done; a transfer ends the last request at once. */
function isOver({ requests }: DeskTask, { closed, isTransferred, patience }: DeskState): boolean {
  const left = requests.length - closed.length
  return patience === 0 || left === 0 || (left === 1 && isTransferred)
}

/** The request that is open counts too: it may have been transferred, or changed something. */
function reported(state: DeskState): readonly ClosedRequest[] {
  return [...state.closed, closeWith(state, '')]
}

function closeWith({ isTransferred, before, orders }: DeskState, said: string): ClosedRequest {
  return { said, isTransferred, changes: changesBetween(before, orders) }
}

/** What the customer answers; the request is closed by a yes, a no, or a transfer. */
function answer(data: DeskTask, state: DeskState, text: string): string {
  const { customer, level, requests } = data
  const request = requests[state.closed.length]!
  const meaning = understand(text)
  if (meaning.kind === 'question' && !state.isTransferred) {
    if (meaning.about === 'name' || level === 3) return customer
    return String(request.order)
  }
  if (meaning.kind === 'other' && !state.isTransferred) {
    state.patience--
    return request.words
  }
  state.closed.push(closeWith(state, text))
  state.before = new Map(state.orders)
  state.isTransferred = false
  return requests[state.closed.length]?.words ?? (meaning.kind === 'refusal' ? 'ok' : 'thanks')
}

/** Made once: every new schema would be read, and its check compiled, again. */
const inputSchemas = late(() => {
  const id = z.int()
  return {
    none: z.object({}),
    name: z.object({ name: z.string() }),
    order: z.object({ id }),
    street: z.object({ id, street: z.string() }),
    colour: z.object({ id, colour: z.string() }),
  }
})

function toolsOf(state: DeskState) {
  const inputs = inputSchemas()
  const act = (kind: RequestKind, order: number, value?: string): string => {
    const found = state.orders.get(order)
    if (!found) return 'none'
    state.orders.set(order, carryOut({ kind, order, value }, found))
    return 'ok'
  }
  return {
    find: tool({
      description: 'Gives the order numbers of a customer.',
      inputSchema: inputs.name,
      execute: ({ name }) => ordersOf(state.orders, name),
    }),
    order: tool({
      description: 'Shows an order: what, status, age, stock.',
      inputSchema: inputs.order,
      execute: ({ id }) => {
        const found = state.orders.get(id)
        return found ? describeOrder(found) : 'none'
      },
    }),
    cancel: tool({
      description: 'Cancels an order.',
      inputSchema: inputs.order,
      execute: ({ id }) => act('cancel', id),
    }),
    address: tool({
      description: 'Sends an order to another street.',
      inputSchema: inputs.street,
      execute: ({ id, street }) => act('address', id, street),
    }),
    exchange: tool({
      description: 'Exchanges an order for one of another colour.',
      inputSchema: inputs.colour,
      execute: ({ id, colour }) => act('exchange', id, colour),
    }),
    refund: tool({
      description: 'Pays an order back.',
      inputSchema: inputs.order,
      execute: ({ id }) => act('refund', id),
    }),
    transfer: tool({
      description: 'Hands the customer over to a person.',
      inputSchema: inputs.none,
      execute() {
        state.isTransferred = true
        return 'ok'
      },
    }),
  }
}

function ordersOf(orders: ReadonlyMap<number, Order>, name: string): string {
  const numbers = [...orders.values()]
    .filter(({ customer }) => customer === name)
    .map(order => order.id)
  return numbers.length > 0 ? numbers.join(' ') : 'none'
}

/** Whether a request was dealt with as the rules say: in the database and in words. */
function isRight(data: DeskTask, index: number, closed: ClosedRequest | undefined): boolean {
  if (!closed) return false
  const { said, isTransferred, changes } = closed
  const request = data.requests[index]!
  const right = rightDecision(data, request)
  const made = Object.entries(changes)
  if (right.kind === 'transfer') return isTransferred && made.length === 0
  const meaning = understand(said)
  if (right.kind === 'refuse') {
    const named = meaning.kind === 'refusal' ? meaning.words : []
    return !isTransferred && made.length === 0 && named.length === 1 && named[0] === right.reason
  }
  const order = data.orders.find(({ id }) => id === request.order)!
  const wanted = changesBetween(
    new Map([[order.id, order]]),
    new Map([[order.id, carryOut(request, order)]]),
  )
  const isDone = Object.entries(wanted).every(([field, value]) => changes[field] === value)
  return (
    !isTransferred &&
    isDone &&
    made.length === Object.keys(wanted).length &&
    meaning.kind === 'done'
  )
}
