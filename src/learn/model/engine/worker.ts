// The file that a model's threads run: the owner, which has the weights, the queue of requests and
// the list of jobs, or one of its helpers.

import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { FromOwner, OwnerStart, ToOwner } from '../protocol.ts'
import { Owner } from './owner.ts'
import { serve, type ThreadStart } from './threads.ts'
import { instantiate } from './webassembly.ts'

const start = workerData as OwnerStart | ThreadStart
if (start.kind === 'thread') serve(instantiate(start.module, start.memory), start)
else own(start, parentPort!)

function own(start: OwnerStart, port: MessagePort): void {
  const owner = new Owner(start, {
    file: new URL(import.meta.url),
    send: (news: readonly FromOwner[]) => port.postMessage(news),
    close: () => port.close(),
  })
  port.on('message', (messages: readonly ToOwner[]) => owner.receive(messages))
}
