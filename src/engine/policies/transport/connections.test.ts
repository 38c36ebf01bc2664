import { createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { openConnections } from './connections.ts'
import { HttpExchange } from './exchange.ts'

type Connections = ReturnType<typeof openConnections>

/** A server that hands every request's path to `answer`, with the number of its connection. */
async function serving(answer: (socket: Socket, connection: number, path: string) => void) {
  let count = 0
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    const number = count++
    sockets.add(socket)
    socket.on('data', data => answer(socket, number, data.toString('latin1').split(' ')[1]!))
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address() as { readonly port: number }
  return {
    url: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

const ok = (text: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`

function start(pool: Connections, path: string): HttpExchange {
  const exchange = new HttpExchange({ where: `GET ${path}`, deadlineSeconds: 60 })
  pool.dispatch({ method: 'GET', path, headers: [], body: null }, exchange)
  return exchange
}

/** Waits for an answer; a failure is told as one. */
async function ask(pool: Connections, path: string): Promise<string> {
  return start(pool, path).answer.then(String, () => 'failed')
}

describe('connections', () => {
  it('serve one request after the other, and no more than may be', async () => {
    await using server = await serving((socket, connection, path) => {
      socket.write(ok(`${connection} ${path}`))
    })
    const pool = openConnections(server.url, 2)
    const answers = await Promise.all(['/a', '/b', '/c', '/d'].map(path => ask(pool, path)))
    expect(answers.map(answer => answer.slice(2))).toEqual(['/a', '/b', '/c', '/d'])
    expect(new Set(answers.map(answer => answer[0])).size).toBe(2)
    expect(['0 /e', '1 /e']).toContain(await ask(pool, '/e'))
    await pool.close()
  })

  it('that break fail their request and make room for who waits', async () => {
    await using server = await serving((socket, connection, path) => {
      if (path === '/break') socket.destroy()
      else if (path === '/nonsense') socket.write('nonsense\r\n\r\n')
      else socket.write(ok(String(connection)))
    })
    const pool = openConnections(server.url, 1)
    const answers = ['/break', '/nonsense', '/a'].map(path => ask(pool, path))
    expect(await Promise.all(answers)).toEqual(['failed', 'failed', '2'])
    await pool.close()
  })

  it('of requests that nobody wants any more are closed, and waiting ones never sent', async () => {
    const paths: string[] = []
    let hold = (): void => {}
    const isHeld = new Promise<void>(resolve => {
      hold = resolve
    })
    await using server = await serving((socket, _, path) => {
      paths.push(path)
      if (path === '/held') hold()
      else socket.write(ok('there'))
    })
    const pool = openConnections(server.url, 1)
    const held = start(pool, '/held')
    const waiting = start(pool, '/waiting')
    const ends = Promise.allSettled([held.answer, waiting.answer])
    const last = ask(pool, '/last')
    waiting.cancel(new Error('not wanted'))
    await isHeld
    held.cancel(new Error('not wanted'))
    expect((await ends).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await last).toBe('there')
    expect(paths).toEqual(['/held', '/last'])
    await pool.close()
  })
})
