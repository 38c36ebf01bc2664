// The requests of the rollouts, sent by an HTTP client that does nothing else.
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { Agent, request } from 'undici'
import { openPolicy, openRenderer } from '../../../dist/index.js'
import { type RolloutWork, rollAll } from './look-up.ts'
import { cpuSeconds, printFigures, readWork } from './side.ts'

interface Sent {
  readonly path: string
  readonly body: Buffer
}

const work = await readWork<RolloutWork>()
const agent = new Agent({ connections: work.concurrency, pipelining: 1 })
const headers = { 'content-type': 'application/json' }

async function send({ path, body }: Sent): Promise<unknown> {
  const url = `${work.url}${path}`
  const answer = await request(url, { method: 'POST', body, headers, dispatcher: agent })
  return await answer.body.json()
}

/** What one rollout asks the server, turn by turn, by a server in between that passes it on. */
async function recordRollout(): Promise<readonly Sent[]> {
  const sent: Sent[] = []
  const pass = async (incoming: IncomingMessage): Promise<unknown> => {
    const one = { path: incoming.url ?? '/', body: await buffer(incoming) }
    if (incoming.method === 'POST') sent.push(one)
    return await send(one)
  }
  const server = createServer((incoming, outgoing) => {
    void pass(incoming).then(answer => {
      outgoing.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const model = await openRenderer(work.model)
  await using policy = await openPolicy(work.policy.replace('URL', url))
  await rollAll({ policy, model, work: { ...work, concurrency: 1, rollouts: 1 } })
  server.closeAllConnections()
  server.close()
  return sent.slice(-work.turns)
}

async function sendAll(bodies: readonly Sent[], rollouts: number): Promise<void> {
  let next = 0
  const client = async (): Promise<void> => {
    while (next++ < rollouts) for (const body of bodies) await send(body)
  }
  await Promise.all(Array.from({ length: work.concurrency }, client))
}

const bodies = await recordRollout()
await sendAll(bodies, 1600)
const cpu = cpuSeconds()
const start = performance.now()
await sendAll(bodies, work.rollouts)
const seconds = (performance.now() - start) / 1000
const turns = work.rollouts * work.turns
printFigures({
  turnsPerSecond: turns / seconds,
  cpuMicrosecondsPerTurn: ((cpuSeconds() - cpu) / turns) * 1e6,
})
await agent.close()
