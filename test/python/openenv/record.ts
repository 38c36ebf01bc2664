// Records what a real OpenEnv server answers, for tests that need no Python:
// npx tsx test/python/openenv/record.ts URL FILE [mcp]
import { writeFileSync } from 'node:fs'
import { openOpenEnv } from '../../../src/worlds/openenv/openenv.ts'
import { connectSocket } from '../../../src/worlds/openenv/sockets/handshake.ts'
import { startOpenEnv } from '../../openenv-server.ts'
import { playOpenEnv } from './play.ts'

const [url = '', file = '', mode] = process.argv.slice(2)
const signal = new AbortController().signal
const http: Record<string, { status: number; body: unknown }> = {}
const sockets: { path: string; exchanges: { sent: unknown; answer: unknown }[] }[] = []

for (const path of ['/schema', '/metadata', '/list_environments']) await keep(path)
const [name] = http['/list_environments']!.body as readonly string[]
await keep(`/${name}/splits`)
for (const split of ['train', 'test']) await keep(`/${name}/num_tasks`, { split })

/** Keeps what one path answers. */
async function keep(path: string, body?: object): Promise<void> {
  const text = body && JSON.stringify(body)
  const response = await fetch(`${url}${path}`, {
    ...(text && { method: 'POST', body: text, headers: { 'content-type': 'application/json' } }),
  })
  http[`${path} ${text ?? ''}`.trim()] = { status: response.status, body: await response.json() }
}

// A server in between, which keeps what passes over its sockets.
await using between = await startOpenEnv(
  (path, body) => http[`${path} ${body}`.trim()] ?? { status: 404, body: {} },
  async (socket, path) => {
    const exchanges: { sent: unknown; answer: unknown }[] = []
    sockets.push({ path, exchanges })
    const early: string[] = []
    let send = (text: string): void => void early.push(text)
    socket.listen({ text: text => send(text), ended: () => upstream.close() })
    const upstream = await connectSocket(`${url}${path}`, { signal })
    let sent = ''
    send = text => {
      sent = text
      upstream.send(text)
    }
    upstream.listen({
      text(text) {
        exchanges.push({ sent: JSON.parse(sent), answer: JSON.parse(text) })
        socket.send(text)
      },
      ended: () => socket.close(),
    })
    for (const text of early) send(text)
  },
)

const environment = await openOpenEnv({ url: between.url, ...(mode === 'mcp' && { mode }) })
console.log(JSON.stringify(await playOpenEnv(environment, { signal }), null, 1))
writeFileSync(file, `${JSON.stringify({ http, sockets }, null, 1)}\n`)
