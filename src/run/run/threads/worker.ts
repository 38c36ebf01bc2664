// The program of a thread that makes attempts: it opens the run by the names of its parts and serves it.
import { parentPort, threadId, workerData } from 'node:worker_threads'
import { describeCause } from '../../../base/core/failure.ts'
import { keepSecret } from '../../../base/core/process/secrets.ts'
import { makeOutbox } from '../../../base/core/threads/outbox.ts'
import { rolloutsOf } from '../roll-groups.ts'
import { openServedRun, type ServedRun } from '../served/served-run.ts'
import { Maker } from './maker.ts'
import type { FromThread, ThreadStart, ToThread } from './messages.ts'

const start = workerData as ThreadStart
const port = parentPort!
const send = makeOutbox<FromThread>(news => port.postMessage(news))

for (const secret of start.secrets) keepSecret(secret)

/** The main thread has already printed the lines of opening the run, so these are dropped. */
let isOpen = false
const opening = openServedRun(start.environment, start.options, {
  concurrency: start.concurrency,
  onUpdate: start.onUpdate,
  tellsSamples: start.tellsSamples,
  imageFolder: start.imageFolder,
  turns: start.turns && {
    ...start.turns,
    name: `${start.turns.name}-${threadId}`,
    onKept: places => send({ kind: 'turns', places }),
  },
  onSignal: event => send({ kind: 'signal', event }),
  ...(!start.waitsForever && {
    onHalted: ({ kind, message }) => send({ kind: 'halted', of: kind, message }),
  }),
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
const maker = new Maker(opening, {
  width: rolloutsOf(start),
  post: batch => port.postMessage([batch], [batch.frames.buffer as ArrayBuffer]),
  send,
})

/** An order about the run itself. */
type RunOrder = Extract<ToThread, { readonly kind: 'pause' | 'resume' | 'close' }>

async function follow(run: ServedRun, order: RunOrder): Promise<void> {
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
    if (order.kind === 'make' || order.kind === 'make-group') maker.follow(order)
    else if (order.kind === 'withdraw') maker.withdraw(order.id)
    else {
      void opening.then(
        run => follow(run, order),
        () => undefined,
      )
    }
  }
})
