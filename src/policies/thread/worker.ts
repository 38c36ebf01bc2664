import { parentPort } from 'node:worker_threads'
import { readAnswer } from '../answer-reading.ts'
import type { Exchange } from '../exchange.ts'
import { openServer, type Server } from '../server.ts'
import { type FromThread, type ToThread, toPlain } from './messages.ts'

type Start = Extract<ToThread, { kind: 'start' }>

const servers = new Map<number, Server>()
const exchanges = new Map<number, Exchange>()
let outbox: FromThread[] = []

/** What one turn of the event loop brings goes out as one message. */
function send(news: FromThread): void {
  if (outbox.length === 0) setImmediate(flush)
  outbox.push(news)
}

function flush(): void {
  const news = outbox
  outbox = []
  parentPort?.postMessage(news)
}

async function start({ id, server, request, body, streams, reading }: Start): Promise<void> {
  const onEvents = (chunk: Buffer): void => send({ kind: 'events', id, chunk: copyOf(chunk) })
  const exchange = servers.get(server)!.start({
    ...request,
    ...(body !== undefined && { body: typeof body === 'string' ? body : toBuffer(body) }),
    ...(streams && { onEvents }),
  })
  exchanges.set(id, exchange)
  try {
    const answer = await exchange.answer
    send({ kind: 'answer', id, value: reading ? readAnswer(answer, reading) : copyOf(answer) })
  } catch (error) {
    send({ kind: 'failure', id, failure: toPlain(error) })
  } finally {
    exchanges.delete(id)
  }
}

function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)
}

/** A view takes all of its memory along when it is sent, and sockets read into large pieces. */
function copyOf(chunk: Buffer): Uint8Array {
  return Uint8Array.prototype.slice.call(chunk)
}

parentPort?.on('message', (orders: readonly ToThread[]) => {
  for (const order of orders) {
    if (order.kind === 'open') servers.set(order.server, openServer(order.address, order.options))
    else if (order.kind === 'start') void start(order)
    else exchanges.get(order.id)?.cancel(new Error('cancelled'))
  }
})
