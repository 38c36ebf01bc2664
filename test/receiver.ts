import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Foreign } from './foreign.ts'

/** A request as a receiver got it. */
export interface Received {
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Foreign
}

/** A server that keeps what it is sent. */
export interface Receiver extends AsyncDisposable {
  readonly url: string
  readonly received: readonly Received[]
}

/** Opens a receiver; `answer` gives the status and the body, or nothing to leave the client waiting. */
export async function openReceiver(
  answer: (index: number) => readonly [number, string] | undefined = () => [200, '{}'],
): Promise<Receiver> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const body = text === '' ? undefined : JSON.parse(text)
      const answered = answer(received.length)
      received.push({ path: request.url ?? '', headers: request.headers, body })
      if (!answered) return
      response.statusCode = answered[0]
      response.end(answered[1])
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
