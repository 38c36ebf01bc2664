import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'

/** A program that serves something for as long as it is kept. */
export interface Serving {
  /** The program and its arguments, given the port to listen at. */
  readonly command: (port: number) => readonly [string, ...string[]]
  readonly variables?: Readonly<Record<string, string>>
  /** What answers when it is ready. */
  readonly path: string
}

/** A program that has begun to answer. */
export interface Started extends AsyncDisposable {
  readonly url: string
}

/** Seconds that a program may take until it answers: packages load slowly on a busy machine. */
const patience = 600

/** Starts a program at a free port and waits until it answers. */
export async function startServing({ command, variables, path }: Serving): Promise<Started> {
  const port = await freePort()
  const [program, ...words] = command(port)
  const child = spawn(program, words, {
    env: { ...process.env, ...variables },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  let ended: string | undefined
  child.stderr.on('data', part => (said = `${said}${part}`.slice(-2000)))
  child.once('error', error => (ended = error.message))
  child.once('exit', (code, signal) => (ended ??= `it ended with ${code ?? signal}: ${said}`))
  const url = `http://127.0.0.1:${port}`
  const stop = async (): Promise<void> => {
    if (ended !== undefined) return
    child.kill()
    await once(child, 'exit')
  }
  const last = performance.now() + patience * 1000
  while (ended === undefined && performance.now() < last) {
    const answer = await fetch(`${url}${path}`).catch(() => undefined)
    if (answer) return { url, [Symbol.asyncDispose]: stop }
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  const why = ended ?? `no answer within ${patience} seconds: ${said}`
  await stop()
  throw new Error(`${program} ${words.join(' ')}: ${why}`)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
