import { parentPort } from 'node:worker_threads'
import { makeOutbox } from '../../../../base/core/threads/outbox.ts'
import { packAnswer, readAnswer } from '../../servers/answer-reading.ts'
import { openServer, type Server } from '../../servers/server.ts'
import type { Exchange } from '../exchange.ts'
import { type FromThread, type StartOrder, type ToThread, toPlain } from './messages.ts'

const servers = new Map<number, Server>()
const exchanges = new Map<number, Exchange>()
const send = makeOutbox<FromThread>(news => parentPort?.postMessage(news))

async function start(order: StartOrder): Promise<void> {
  const [id, number, path, headers, deadlineSeconds, body, from, to, streams, kind, width] = order
  const server = servers.get(number)!
  const onEvents = streams
    ? (chunk: Buffer): void => send({ kind: 'events', id, chunk: copyOf(chunk) })
    : undefined
  const sent = body === undefined ? undefined : bodyOf(body, from, to)
  const exchange = server.start({ path, headers, deadlineSeconds, body: sent, onEvents })
  exchanges.set(id, exchange)
  try {
    const answer = await exchange.answer
    const asked = { where: `POST ${server.url}${path}`, width, sent: sent as Buffer }
    send([id, kind ? packAnswer(readAnswer(answer, kind, asked)) : copyOf(answer)])
  } catch (error) {
    send({ kind: 'failure', id, failure: toPlain(error) })
  } finally {
    exchanges.delete(id)
  }
}

function bodyOf(body: NonNullable<StartOrder[5]>, from: number, to: number): string | Buffer {
  if (typeof body === 'string') return body
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return Buffer.from(body, from, to - from)
}

/** A copy: sending a view would send its whole buffer, and sockets read into large ones. */
function copyOf(chunk: Buffer): Uint8Array {
  return Uint8Array.prototype.slice.call(chunk)
}

parentPort?.on('message', (orders: readonly ToThread[]) => {
  for (const order of orders) {
    if (!('kind' in order)) void start(order)
    else if (order.kind === 'open')
      servers.set(order.server, openServer(order.address, order.options))
    else exchanges.get(order.id)?.cancel(new Error('cancelled'))
  }
})
