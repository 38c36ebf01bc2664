// The file that a model's threads run: the owner, which has the weights, the queue of requests and
// the list of jobs, or one of its helpers.

import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { FromOwner, OwnerStart, ToOwner } from '../protocol.ts'
import { openEngine } from './open-engine.ts'
import { Owner } from './owner.ts'
import { serve, type ThreadStart } from './threads.ts'
import { instantiate } from './webassembly.ts'

const start = workerData as OwnerStart | ThreadStart
if (start.kind === 'thread') serve(instantiate(start.module, start.memory), start)
else await own(start, parentPort!)

async function own(start: OwnerStart, port: MessagePort): Promise<void> {
  const send = (news: readonly FromOwner[]) => port.postMessage(news)
  const engine = await openEngine(start, {
    file: new URL(import.meta.url),
    tell: text => send([{ kind: 'told', text }]),
  })
  const owner = new Owner(engine, {
    send,
    close: () => port.close(),
  })
  port.on('message', (messages: readonly ToOwner[]) => owner.receive(messages))
}
