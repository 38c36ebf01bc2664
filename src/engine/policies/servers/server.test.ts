import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { readEvents } from '../transport/events.ts'
import type { ServerError } from '../transport/server-error.ts'
import { openServerThread } from '../transport/thread/thread.ts'
import { makeVersions } from '../versions.ts'
import { ask } from './ask.ts'
import { openServer } from './server.ts'

const call = () => ({ signal: AbortSignal.timeout(50_000) })

async function serving(answer: (response: ServerResponse) => void) {
  const server = createServer((_, response) => answer(response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

async function errorOf(work: Promise<unknown>): Promise<ServerError> {
  return work.then(
    () => expect.unreachable('it should have failed'),
    (cause: ServerError) => cause,
  )
}

describe.each([
  ['server', {}],
  ['server in a thread', { thread: openServerThread() }],
])('%s', (_, where) => {
  it('quotes the beginning of an error page, without the key', async () => {
    await using page = await serving(response => {
      response.statusCode = 500
      response.end(`your key   is\nsecret-key ${'and more '.repeat(500)}`)
    })
    await using server = openServer(page.url, { ...where, key: 'secret-key' })
    const { message, status } = await errorOf(ask(server, { path: '/a', body: '{}' }, call()))
    expect(status).toBe(500)
    expect(message).toContain(`POST ${page.url}/a answered 500: your key is [key] and more`)
    expect(message.length).toBeLessThan(400)
  })

  it('reads Retry-After in seconds and as a date', async () => {
    const headers = [
      { 'retry-after': '2.5' },
      { 'retry-after': 'Wed, 21 Oct 2026 07:28:30 GMT', date: 'Wed, 21 Oct 2026 07:28:00 GMT' },
      { 'retry-after': 'soon' },
    ]
    const seen: (number | undefined)[] = []
    for (const each of headers) {
      await using page = await serving(response => {
        response.sendDate = false
        response.writeHead(429, each).end()
      })
      await using server = openServer(page.url, where)
      const error = await errorOf(ask(server, { path: '/' }, call()))
      expect(error.message).toContain('answered 429, with no body')
      seen.push(error.retryAfterSeconds)
    }
    expect(seen).toEqual([2.5, 30, undefined])
  })

  it('says who refused the connection', async () => {
    await using server = openServer('http://127.0.0.1:1')
    const { message, problem } = await errorOf(ask(server, { path: '/a' }, call()))
    expect(problem).toBe('connection')
    expect(message).toBe('GET http://127.0.0.1:1/a failed: connect ECONNREFUSED 127.0.0.1:1')
  })

  it('keeps the path of its address', async () => {
    let path: string | undefined
    await using page = await serving(response => {
      path = response.req.url
      response.end('{}')
    })
    await using server = openServer(`${page.url}/some/v1/`)
    await ask(server, { path: '/models' }, call())
    expect(path).toBe('/some/v1/models')
  })

  it('waits for a connection no longer than the deadline', async () => {
    await using page = await serving(() => {})
    await using server = openServer(page.url, { ...where, connections: 1, deadlineSeconds: 0.1 })
    const errors = await Promise.all(
      [0, 1, 2].map(() => errorOf(ask(server, { path: '/' }, call()))),
    )
    expect(errors.map(({ problem }) => problem)).toEqual(['deadline', 'deadline', 'deadline'])
  })

  it('rejects what is asked after it was disposed of', async () => {
    const server = openServer('http://127.0.0.1:1')
    await server[Symbol.asyncDispose]()
    await expect(ask(server, { path: '/' }, call())).rejects.toThrow('were closed')
  })
})

describe('events', () => {
  it('are the same however the pieces are cut', () => {
    const stream = Buffer.from(
      ': ping\n\ndata: {"a":1}\n\ndata: é\r\n\r\nevent: x\ndata: 2\n\ndata: 3\ndata: 4\n\ndata: [DONE]\n\n',
    )
    for (let size = 1; size <= stream.length; size++) {
      const seen: string[] = []
      const read = readEvents('here', data => seen.push(data))
      for (let at = 0; at < stream.length; at += size) read(stream.subarray(at, at + size))
      expect(seen).toEqual(['{"a":1}', 'é', '2', '3\n4'])
    }
  })
})

describe('versions', () => {
  it('stay where they are when a server does not tell', () => {
    const versions = makeVersions()
    expect(versions.latest).toBeUndefined()
    expect(versions.read(undefined)).toBe(0)
    expect(versions.read('12')).toBe(12)
    expect(versions.read(undefined)).toBe(12)
    expect(versions.read(7)).toBe(7)
    expect(versions.read('new')).toBe(13)
    expect(versions.read('new')).toBe(13)
  })
})
