import { createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { AnswerHandler } from './connection.ts'
import { openConnections } from './connections.ts'
import { headerLines } from './header-lines.ts'

/** A server that hands every request's bytes to `answer`, with the number of its connection. */
async function serving(answer: (socket: Socket, connection: number, text: string) => void) {
  let count = 0
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    const number = count++
    sockets.add(socket)
    socket.on('data', data => answer(socket, number, data.toString('latin1')))
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

const get = (path: string) => ({ method: 'GET', path, headers: '', body: null }) as const
const ok = (text: string, more = '') =>
  `HTTP/1.1 200 OK\r\n${more}content-length: ${text.length}\r\n\r\n${text}`

/** Waits for an answer; a failure is its message. */
function ask(pool: ReturnType<typeof openConnections>, path: string): Promise<string> {
  return new Promise(resolve => {
    let body = ''
    const handler: AnswerHandler = {
      onHead() {},
      onData(chunk) {
        body += chunk.toString('latin1')
      },
      onEnd: () => resolve(body),
      onFailure: cause => resolve(`failed: ${cause.message}`),
    }
    pool.dispatch(get(path), handler)
  })
}

describe('connections', () => {
  it('serve one request after the other, and no more than may be', async () => {
    await using server = await serving((socket, connection, text) => {
      socket.write(ok(`${connection} ${text.split(' ')[1]}`))
    })
    const pool = openConnections(server.url, 2)
    const answers = await Promise.all(['/a', '/b', '/c', '/d'].map(path => ask(pool, path)))
    expect(answers.map(answer => answer.slice(2))).toEqual(['/a', '/b', '/c', '/d'])
    expect(new Set(answers.map(answer => answer[0])).size).toBe(2)
    expect(['0 /e', '1 /e']).toContain(await ask(pool, '/e'))
    await pool.close()
  })

  it('are not used again where the server says so, answers early or keeps them too shortly', async () => {
    for (const header of ['connection: close\r\n', 'keep-alive: timeout=1\r\n']) {
      await using server = await serving((socket, connection) => {
        socket.write(ok(String(connection), header))
      })
      const pool = openConnections(server.url, 1)
      expect([await ask(pool, '/'), await ask(pool, '/')]).toEqual(['0', '1'])
      await pool.close()
    }
  })

  it('that break fail their request and make room for who waits', async () => {
    await using server = await serving((socket, connection, text) => {
      if (text.startsWith('GET /break')) socket.destroy()
      else if (text.startsWith('GET /nonsense')) socket.write('nonsense\r\n\r\n')
      else socket.write(ok(String(connection)))
    })
    const pool = openConnections(server.url, 1)
    expect(await Promise.all(['/break', '/nonsense', '/a'].map(path => ask(pool, path)))).toEqual([
      'failed: the other side hung up',
      'failed: the answer is not HTTP/1.1: it begins with "nonsense"',
      '2',
    ])
    await pool.close()
  })

  it('of requests that nobody wants any more are closed, and waiting ones never sent', async () => {
    const paths: string[] = []
    await using server = await serving((socket, _, text) => {
      const path = text.split(' ')[1]!
      paths.push(path)
      if (path === '/last') socket.write(ok('there'))
    })
    const pool = openConnections(server.url, 1)
    const silent: AnswerHandler = {
      onHead() {},
      onData() {},
      onEnd: () => expect.unreachable(),
      onFailure: () => expect.unreachable(),
    }
    const held = pool.dispatch(get('/held'), silent)
    const waiting = pool.dispatch(get('/waiting'), silent)
    const last = ask(pool, '/last')
    waiting.abandon()
    while (paths.length === 0) await new Promise(resolve => setImmediate(resolve))
    held.abandon()
    expect(await last).toBe('there')
    expect(paths).toEqual(['/held', '/last'])
    await pool.close()
  })

  it('refuse paths that would be more than one', async () => {
    const pool = openConnections('http://127.0.0.1:1', 1)
    for (const path of ['/a b', '/a\r\nhost: b', 'a', '', '/ä']) {
      await expect(ask(pool, path), path).rejects.toThrow('is not a path')
    }
    await pool.close()
  })

  it('refuse headers that would be more than one', () => {
    expect(headerLines(['a-b', 'c d', 'e', ''])).toBe('a-b: c d\r\ne: \r\n')
    expect(() => headerLines(['a', 'b\r\nc: d'])).toThrow('no header may have')
    expect(() => headerLines(['a b', 'c'])).toThrow('not the name of a header')
  })
})
