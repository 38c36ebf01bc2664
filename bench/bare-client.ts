import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { Agent, request } from 'undici'

/** A request that a rollout sent. */
export interface Sent {
  readonly path: string
  readonly body: Buffer
}

/** What `work` asks a server that always gives the same answer. */
export async function recordRequests(
  answer: object,
  work: (url: string) => Promise<void>,
): Promise<readonly Sent[]> {
  const sent: Sent[] = []
  const text = JSON.stringify(answer)
  const record = async (incoming: IncomingMessage): Promise<void> => {
    const body = await buffer(incoming)
    if (incoming.method === 'POST') sent.push({ path: incoming.url ?? '/', body })
  }
  const server = createServer((incoming, outgoing) => {
    void record(incoming).then(() => {
      outgoing.setHeader('content-type', 'application/json').end(text)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  } finally {
    server.closeAllConnections()
    server.close()
  }
  return sent
}

/** The connections of a bare client. */
export function openAgent(connections: number): Agent {
  return new Agent({ connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
}

/** Sends the requests of one rollout as often as asked, and parses the answers: nothing else. */
export async function sendRollouts(
  url: string,
  run: {
    readonly agent: Agent
    readonly sent: readonly Sent[]
    readonly concurrency: number
    readonly rollouts: number
  },
): Promise<void> {
  let next = 0
  const headers = { 'content-type': 'application/json' }
  const client = async (): Promise<void> => {
    while (next++ < run.rollouts) {
      for (const { path, body } of run.sent) {
        const options = { method: 'POST', body, headers, dispatcher: run.agent } as const
        const answer = await request(`${url}${path}`, options)
        if (answer.statusCode !== 200) throw new Error(`the server answered ${answer.statusCode}`)
        await answer.body.json()
      }
    }
  }
  await Promise.all(Array.from({ length: run.concurrency }, client))
}
