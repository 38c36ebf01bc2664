import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { isLoopback } from './address.ts'
import type { DirectRoutes } from './direct-routes.ts'
import { type DoorLimits, type DoorOptions, type DoorRoutes, openDoor } from './door.ts'
import { depthOf, type RefusedRequest } from './json-body.ts'

const closing: AsyncDisposable[] = []
afterEach(async () => {
  for (const each of closing.splice(0)) await each[Symbol.asyncDispose]()
})

/** A door with one route that tells and one that changes something; counts what was changed. */
async function listening(options: Partial<DoorOptions & DoorLimits & DoorRoutes> = {}) {
  const server = openDoor({ host: '127.0.0.1', ...options })
  let changes = 0
  server.get('/tell', async () => ({ changes }))
  server.get('/health', { config: { needsNoToken: true } }, async () => 'ok')
  server.post('/change', async ({ body }) => ({ changes: ++changes, body }))
  server.post('/flush', { config: { changesNothing: true } }, async () => 'flushed')
  const url = await server.listen({ port: 0, host: '127.0.0.1' })
  closing.push({ [Symbol.asyncDispose]: async () => await server.close() })
  const ask = (
    path: string,
    headers: Record<string, string | undefined> = {},
    { method = 'GET', body = '' } = {},
  ) =>
    new Promise<{ code: number; text: string; headers: NodeJS.Dict<string | string[]> }>(
      (resolve, reject) => {
        const { host, ...rest } = headers
        const request = httpRequest(
          `${url}${path}`,
          { method, setHost: !('host' in headers), headers: { ...rest, ...(host && { host }) } },
          response => {
            let text = ''
            response.on('data', part => (text += part))
            response.on('end', () =>
              resolve({ code: response.statusCode!, text, headers: response.headers }),
            )
          },
        )
        request.on('error', reject)
        request.end(body)
      },
    )
  const json = { 'content-type': 'application/json' }
  const post = (headers: Record<string, string | undefined> = {}, body = '{}') =>
    ask('/change', { ...json, ...headers }, { method: 'POST', body })
  return { ask, post, url, changes: () => changes }
}

const codeOf = async (answer: Promise<{ code: number }>): Promise<number> => (await answer).code

describe('H2: a door', () => {
  it('answers only for hosts that are its own', async () => {
    const { ask } = await listening({ allowedHosts: ['trainer.internal'] })
    for (const host of [
      'localhost',
      'LOCALHOST:1',
      '127.0.0.1:80',
      '[::1]:80',
      'trainer.internal:8',
    ]) {
      expect(await codeOf(ask('/tell', { host })), host).toBe(200)
    }
    const foreign = ['evil.example', '127.0.0.1.evil.example', 'localhost.evil.example', '10.0.0.1']
    for (const host of [
      ...foreign,
      '127.evil.example',
      'a@localhost',
      'localhost:x',
      'localhost/',
    ]) {
      expect(await codeOf(ask('/tell', { host })), host).toBe(421)
    }
  })

  it('lets pages of others change nothing and read nothing', async () => {
    const { ask, post, url, changes } = await listening({ allowedOrigins: ['https://my.app'] })
    for (const origin of [
      'https://evil.example',
      'null',
      'http://127.0.0.1:1',
      `${url}.evil.example`,
    ]) {
      expect(await codeOf(post({ origin })), origin).toBe(403)
      expect(await codeOf(ask('/tell', { origin })), origin).toBe(403)
    }
    expect(await codeOf(ask('/tell', { 'sec-fetch-site': 'cross-site' }))).toBe(403)
    expect(changes()).toBe(0)
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
    expect(await codeOf(ask('/tell', link))).toBe(403)
    const page = await listening({ opensByLink: true })
    expect(await codeOf(page.ask('/tell', link))).toBe(200)
    expect(await codeOf(page.post(link))).toBe(403)
    expect(await codeOf(post({ origin: url }))).toBe(200)
    const allowed = await post({ origin: 'https://my.app' })
    expect(allowed.code).toBe(200)
    expect(allowed.headers['access-control-allow-origin']).toBe('https://my.app')
    const before = await ask('/change', { origin: 'https://my.app' }, { method: 'OPTIONS' })
    expect([before.code, before.headers['access-control-allow-headers']]).toEqual([
      204,
      'authorization, content-type, last-event-id',
    ])
  })

  it('changes nothing for a content type that a form can send', async () => {
    const { ask, post, changes } = await listening()
    const forms = ['text/plain', 'Text/Plain; charset=utf-8', 'multipart/form-data; boundary=a']
    for (const type of [...forms, 'application/x-www-form-urlencoded', '']) {
      expect(await codeOf(post({ 'content-type': type })), type).toBe(415)
    }
    expect(await codeOf(ask('/change', {}, { method: 'POST' }))).toBe(415)
    expect(changes()).toBe(0)
    expect(await codeOf(post({}, ''))).toBe(200)
    expect(await codeOf(ask('/flush', {}, { method: 'POST' }))).toBe(200)
  })

  it('asks for its token on every route but those that tell nothing', async () => {
    const { ask, post, changes } = await listening({ token: 'secret' })
    for (const authorization of [undefined, 'secret', 'Bearer', 'Bearer secret2', 'Basic secret']) {
      expect(await codeOf(post(authorization ? { authorization } : {}))).toBe(401)
      expect(await codeOf(ask('/nowhere', authorization ? { authorization } : {}))).toBe(401)
    }
    expect(changes()).toBe(0)
    expect(await codeOf(post({ authorization: 'Bearer secret' }))).toBe(200)
    expect(await codeOf(ask('/health'))).toBe(200)
  })

  it('needs a token beyond loopback', () => {
    expect(() => openDoor({ host: '0.0.0.0' })).toThrow('needs a token')
    expect(() => openDoor({ host: '127.evil.example' })).toThrow('needs a token')
    expect(['127.0.0.1', '127.9.9.9', '::1', '[::1]', 'localhost'].every(isLoopback)).toBe(true)
    expect(['0.0.0.0', '::', '127.evil.example', '1270.0.0.1', ''].some(isLoopback)).toBe(false)
  })

  it('answers deep JSON and repeated keys with 400, and a body that is too long with 413', async () => {
    const { ask, post } = await listening({ bodyBytes: 100_000 })
    expect(await codeOf(post({}, `${'['.repeat(40_000)}${']'.repeat(40_000)}`))).toBe(400)
    expect(await codeOf(post({}, `{"a":"${'['.repeat(40_000)}"}`))).toBe(200)
    expect(await codeOf(post({}, '{"__proto__":{"x":1}}'))).toBe(400)
    expect(await codeOf(post({}, `"${'a'.repeat(200_000)}"`))).toBe(413)
    expect(await codeOf(ask('/tell?after=1&after=2'))).toBe(400)
    expect(depthOf('{"a":["\\"[[[",{}]}')).toBe(3)
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), value => {
        expect(depthOf(JSON.stringify(value))).toBe(levelsOf(value))
      }),
      { seed: 3 },
    )
  })

  it('holds routes beside the router to the same rules', async () => {
    const direct: DirectRoutes<{ readonly path: string }> = {
      find: (_method, path) => (path === '/direct' ? { path } : undefined),
      answer: async (_found, { body, query }, reply) =>
        reply.send(200, 'application/json', JSON.stringify({ body, query })),
      refuse: (_found, _head, { cause, reply }) =>
        reply.send((cause as RefusedRequest).statusCode, 'text/plain', (cause as Error).message),
    }
    const allowedOrigins = ['https://my.app']
    const { ask } = await listening({ direct, bodyBytes: 1000, allowedOrigins, token: 'secret' })
    const post = (headers: Record<string, string | undefined>, body = '{"a":[1]}', query = '') =>
      ask(
        `/direct${query}`,
        { 'content-type': 'application/json', ...headers },
        { method: 'POST', body },
      )
    const answer = await post({ origin: 'https://my.app' }, '{"a":[1]}', '?b=1')
    expect([answer.code, answer.text]).toEqual([200, '{"body":{"a":[1]},"query":{"b":"1"}}'])
    expect(answer.headers['access-control-allow-origin']).toBe('https://my.app')
    expect((await post({})).headers['x-content-type-options']).toBe('nosniff')
    expect(await codeOf(post({ host: 'evil.example' }))).toBe(421)
    expect(await codeOf(post({ origin: 'https://evil.example' }))).toBe(403)
    expect(await codeOf(post({ 'content-type': 'text/plain' }))).toBe(415)
    expect(await codeOf(post({ 'content-type': 'text/csv' }))).toBe(415)
    expect(await codeOf(post({ 'content-encoding': 'gzip' }))).toBe(415)
    expect(await codeOf(post({ 'content-encoding': 'identity' }))).toBe(200)
    expect(await codeOf(post({}, '{}', '?b=1&b=2'))).toBe(400)
    expect(await codeOf(post({}, '{'))).toBe(400)
    expect(await codeOf(post({}, `${'['.repeat(200)}${']'.repeat(200)}`))).toBe(400)
    const long = await post({}, `"${'a'.repeat(2000)}"`)
    expect([long.code, long.headers.connection]).toEqual([413, 'close'])
    expect(await codeOf(ask('/direct', {}, { method: 'POST' }))).toBe(200)
    expect(await codeOf(ask('/elsewhere'))).toBe(401)
  })

  it('ends a request whose body never comes whole', async () => {
    const { url } = await listening({ requestSeconds: 0.05 })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    const head = 'POST /change HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
    socket.write(`${head}Content-Length: 100\r\n\r\n{"half`)
    let answer = ''
    socket.on('data', part => (answer += part))
    await once(socket, 'close')
    expect(answer).toMatch(/^HTTP\/1.1 408 /)
  })
})

function levelsOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(levelsOf))
}
