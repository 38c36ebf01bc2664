// The program of a thread that makes attempts: it opens the run by the names of its parts and serves it.
import { parentPort, workerData } from 'node:worker_threads'
import { describeCause } from '../../../base/core/failure.ts'
import { makeLane } from '../../../base/core/lane.ts'
import { keepSecret, withoutSecrets } from '../../../base/core/process/secrets.ts'
import { makeOutbox } from '../../../base/core/threads/outbox.ts'
import { openBudget, type SpentKind } from '../budget.ts'
import { rolloutsOf } from '../roll-groups.ts'
import { openServedRun, type ServedRun } from '../served/served-run.ts'
import { makeMadePost } from './made-batch.ts'
import {
  type FromThread,
  makingOf,
  type SharedWork,
  type ThreadStart,
  type ToThread,
} from './messages.ts'

const start = workerData as ThreadStart
const port = parentPort!
const send = makeOutbox<FromThread>(news => port.postMessage(news))
const post = makeMadePost(batch => port.postMessage([batch], [batch.frames.buffer as ArrayBuffer]))
/** A few more attempts are sent than may run at one time, so that the thread never waits for the next. */
const lane = makeLane('rollouts', rolloutsOf(start))
const underWay = new Map<number, AbortController>()
/** Orders whose result nobody waits for. */
const withdrawn = new Set<number>()
/** What the last group that was ordered had in common with others. */
let shared: SharedWork | undefined

type Order<Kind extends ToThread['kind']> = ToThread & { readonly kind: Kind }

/** The allowance of a group did not suffice. */
class SpentError extends Error {
  readonly of: SpentKind

  constructor(of: SpentKind) {
    super(`the allowance of ${of} is spent`)
    this.of = of
  }
}

for (const secret of start.secrets) keepSecret(secret)

/** The main thread has already printed the lines of opening the run, so these are dropped. */
let isOpen = false
const opening = openServedRun(start.environment, start.options, {
  concurrency: start.concurrency,
  onUpdate: start.onUpdate,
  tellsSamples: start.tellsSamples,
  onSignal: event => send({ kind: 'signal', event }),
  onHalted: ({ kind, message }) => send({ kind: 'halted', of: kind, message }),
  tell(line) {
    if (isOpen) send({ kind: 'line', line })
  },
})
opening.then(
  () => {
    isOpen = true
    send({ kind: 'ready' })
  },
  error => send({ kind: 'refused', reason: describeCause(error) }),
)

async function make(run: ServedRun, { id, work, making }: Order<'make'>): Promise<void> {
  const { signal } = underWay.get(id)!
  const served = await lane.run({ signal }, () => run.make(work, { signal, making }))
  if (served.kind === 'made') post.addAttempt(id, served, 'alone')
  else send({ kind: 'spent', id, of: served.of })
}

/** Makes all attempts of a group and weighs them; each is sent when it has ended. */
async function makeGroup(run: ServedRun, ordered: Order<'make-group'>): Promise<void> {
  shared = ordered.shared ?? shared
  const { id } = ordered
  const work = { ...shared!, ...ordered.work }
  const stop = underWay.get(id)!
  const { signal } = stop
  const { group, task, order, members: count, step } = work
  using budget = work.allowance && openBudget(work.allowance)
  const rolling = Array.from({ length: count }, async (_, member) => {
    const making = makingOf(group, member, 0)
    const call = { signal, making, ...(budget && { budget }) }
    const served = await lane.run({ signal }, () => run.make({ ...work, member }, call))
    if (served.kind === 'spent') throw new SpentError(served.of)
    post.addAttempt(id, served, 'in its group')
    return served.members
  })
  // With one that fails the others end: the group comes whole from here, or not at all.
  for (const each of rolling) each.catch(error => stop.abort(error))
  const members = (await Promise.all(rolling)).flat()
  const header = { id: group, task, ...(step !== undefined && { step }) }
  post.addGroup(id, { group: run.weigh(header, members), task, order })
}

/** Runs an order for attempts, and tells why they were not made. */
async function tellFailure(id: number, making: Promise<void>): Promise<void> {
  try {
    await making
  } catch (error) {
    if (error instanceof SpentError) send({ kind: 'spent', id, of: error.of })
    else if (!withdrawn.has(id)) {
      send({ kind: 'failed', id, reason: withoutSecrets(describeCause(error)) })
    }
  } finally {
    withdrawn.delete(id)
    underWay.delete(id)
  }
}

async function follow(run: ServedRun, order: ToThread): Promise<void> {
  if (order.kind === 'make') return await tellFailure(order.id, make(run, order))
  if (order.kind === 'make-group') return await tellFailure(order.id, makeGroup(run, order))
  if (order.kind === 'withdraw') return
  const { id } = order
  if (order.kind === 'pause') return run.pause(async () => send({ kind: 'done', id }))
  if (order.kind === 'resume') {
    const { version, weights } = order
    await run.resume({ version, weights: async () => weights })
  } else await run[Symbol.asyncDispose]()
  send({ kind: 'done', id })
}

port.on('message', (orders: readonly ToThread[]) => {
  for (const order of orders) {
    // An attempt may be withdrawn before the run is open, so its signal is made at once.
    if (order.kind === 'make' || order.kind === 'make-group') {
      underWay.set(order.id, new AbortController())
    }
    if (order.kind === 'withdraw' && underWay.has(order.id)) {
      withdrawn.add(order.id)
      underWay.get(order.id)!.abort(new Error('it was withdrawn'))
    }
    void opening.then(
      run => follow(run, order),
      () => undefined,
    )
  }
})
