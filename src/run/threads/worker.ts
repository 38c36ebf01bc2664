// The program of a thread that makes attempts: it opens the run by the names of its parts and serves it.
import { parentPort, workerData } from 'node:worker_threads'
import { describeCause } from '../../core/failure.ts'
import { openLane } from '../../core/lane.ts'
import { keepSecret, withoutSecrets } from '../../core/process/secrets.ts'
import { openOutbox } from '../../threads/outbox.ts'
import { rolloutsOf } from '../roll-groups.ts'
import { openServedRun, type ServedRun } from '../served/served-run.ts'
import { openMadePost } from './made-batch.ts'
import type { FromThread, ThreadStart, ToThread } from './messages.ts'

const start = workerData as ThreadStart
const port = parentPort!
const send = openOutbox<FromThread>(news => port.postMessage(news))
const sendMade = openMadePost(batch =>
  port.postMessage([batch], [batch.frames.buffer as ArrayBuffer]),
)
/** A few more attempts are sent than may run at one time, so that the thread never waits for the next. */
const lane = openLane('rollouts', rolloutsOf(start))
const underWay = new Map<number, AbortController>()

for (const secret of start.secrets) keepSecret(secret)

/** The main thread has already printed the lines of opening the run, so these are dropped. */
let isOpen = false
const opening = openServedRun(start.environment, start.options, {
  concurrency: start.concurrency,
  onUpdate: start.onUpdate,
  tellsSamples: start.tellsSamples,
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

async function make(run: ServedRun, order: ToThread & { kind: 'make' }): Promise<void> {
  const { id, work, making } = order
  const { signal } = underWay.get(id)!
  try {
    const served = await lane.run({ signal }, () => run.make(work, { signal, making }))
    if (served.kind === 'made') sendMade(id, served)
    else send({ kind: 'spent', id, of: served.of })
  } catch (error) {
    if (!signal.aborted) {
      send({ kind: 'failed', id, reason: withoutSecrets(describeCause(error)) })
    }
  } finally {
    underWay.delete(id)
  }
}

async function follow(run: ServedRun, order: ToThread): Promise<void> {
  if (order.kind === 'make') return await make(run, order)
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
    if (order.kind === 'make') underWay.set(order.id, new AbortController())
    if (order.kind === 'withdraw') underWay.get(order.id)?.abort(new Error('it was withdrawn'))
    void opening.then(
      run => follow(run, order),
      () => undefined,
    )
  }
})
