import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { isLoopback } from './address.ts'
import { Door, type DoorLimits, everybody } from './door.ts'
import { Intake } from './intake.ts'
import type { DoorOptions } from './rules.ts'

const closing: AsyncDisposable[] = []
afterEach(async () => {
  for (const each of closing.splice(0)) await each[Symbol.asyncDispose]()
})

/** A door with one route that tells and one that changes something; counts what was changed. */
async function listening(options: Partial<DoorOptions & DoorLimits> = {}) {
  const door = new Door({ host: '127.0.0.1', ...options })
  let changes = 0
  door.get('/tell', () => ({ changes }))
  door.get('/health', { admit: everybody }, () => 'ok')
  door.post('/change', async request => ({ body: await request.json(), changes: ++changes }))
  door.post('/flush', { changesNothing: true }, () => 'flushed')
  door.put('/files/:folder/:name', async ({ params, query }) => ({ params, query }))
  const url = await door.listen(0)
  closing.push({ [Symbol.asyncDispose]: () => door.close() })
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
    expect(() => new Door({ host: '0.0.0.0' })).toThrow('needs a token')
    expect(() => new Door({ host: '127.evil.example' })).toThrow('needs a token')
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
  })

  it('reads what a path and its query say, and refuses what cannot be decoded', async () => {
    const { ask } = await listening()
    const put = (path: string) => ask(path, {}, { method: 'PUT' })
    const { text } = await put('/files/a%2Fb/c.txt?to=%C3%A9')
    expect(JSON.parse(text)).toEqual({
      params: { folder: 'a/b', name: 'c.txt' },
      query: { to: 'é' },
    })
    expect(await codeOf(put('/files/a%2/c'))).toBe(400)
    expect(await codeOf(put('/files/a'))).toBe(404)
    expect(await codeOf(ask('/tell', {}, { method: 'HEAD' }))).toBe(200)
    expect(await codeOf(ask('/change'))).toBe(404)
  })

  it('takes a body as it is, of its own type and length', async () => {
    const { ask, post } = await listening({ bodyBytes: 1000 })
    expect(await codeOf(post({ 'content-type': 'text/csv' }))).toBe(415)
    expect(await codeOf(post({ 'content-encoding': 'gzip' }))).toBe(415)
    expect(await codeOf(post({ 'content-encoding': 'identity' }))).toBe(200)
    expect(await codeOf(post({}, '{'))).toBe(400)
    const long = await post({}, `"${'a'.repeat(2000)}"`)
    expect([long.code, long.headers.connection]).toEqual([413, 'close'])
    expect(await codeOf(ask('/tell'))).toBe(200)
  })

  it('counts two Host headers as none', async () => {
    const { url } = await listening()
    const head = 'GET /tell HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n'
    expect(await said(url, `${head}Connection: close\r\n\r\n`)).toMatch(/^HTTP\/1.1 421 /)
  })

  it('refuses a stranger from the head, before a byte of the body is taken', async () => {
    const { url, changes } = await listening({ token: 'secret-token' })
    const head = 'POST /change HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
    // None of the announced bytes is sent: whoever waits for them does not answer.
    const length = 'Content-Length: 60000000\r\n'
    const answer = await said(url, `${head}${length}\r\n`)
    expect(answer).toMatch(/^HTTP\/1.1 401 /)
    expect(answer.toLowerCase()).toContain('connection: close')
    const expecting = await said(url, `${head}${length}Expect: 100-continue\r\n\r\n`)
    expect(expecting).toMatch(/^HTTP\/1.1 401 /)
    const known = 'Authorization: Bearer secret-token\r\nExpect: 100-continue\r\n'
    const invited = await said(url, `${head}${known}Content-Length: 2\r\n\r\n`, '{}')
    expect(invited).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 /)
    expect(changes()).toBe(1)
  })

  it('bounds the values of a body, which take longer to parse than its bytes', async () => {
    const { post } = await listening()
    const many = `[${Array(500_001).fill('{}').join()}]`
    expect(await codeOf(post({}, many))).toBe(413)
    expect(await codeOf(post({}, `["${',{'.repeat(1_000_001)}"]`))).toBe(200)
  })

  it('closes strangers when it has too many connections, and never who was let in', async () => {
    const { url } = await listening({ token: 'a token of this test', connections: 4 })
    const authorization = 'authorization: Bearer a token of this test\r\n'
    const known = await lastingIn(url, authorization)
    for (let come = 0; come < 8; come++) await lastingIn(url, '')
    expect(await known.asks()).toContain(' 200 OK')
    const another = await lastingIn(url, authorization)
    expect(await another.asks()).toContain(' 200 OK')
    known.socket.destroy()
    another.socket.destroy()
  })

  it('bounds what it holds of bodies that are being read, of all and of one peer', () => {
    const intake = new Intake({ all: 100, perPeer: 60 })
    const one = intake.open('one')
    one.take(40)
    using again = intake.open('one')
    expect(() => again.take(21)).toThrow('come again')
    using other = intake.open('other')
    other.take(60)
    expect(() => intake.open('third').take(1)).toThrow('come again')
    one[Symbol.dispose]()
    again.take(40)
    expect(intake.held).toBe(100)
  })

  it('ends a request whose body never comes whole', async () => {
    const { url } = await listening({ requestSeconds: 0.05 })
    const head = 'POST /change HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
    expect(await said(url, `${head}Content-Length: 100\r\n\r\n{"half`)).toMatch(/^HTTP\/1.1 408 /)
  })
})

/** What a door says to these bytes, and to others once it has asked for them, until it ends the connection. */
/** A connection that stays, over which one request was answered. */
async function lastingIn(url: string, header: string) {
  const { host, hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).setEncoding('latin1')
  socket.on('error', () => undefined)
  const asks = async (): Promise<string> => {
    socket.write(`GET /tell HTTP/1.1\r\nhost: ${host}\r\n${header}\r\n`)
    const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close')])
    return String(answer)
  }
  await asks()
  return { socket, asks }
}

async function said(url: string, bytes: string, more = ''): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.write(bytes)
  let answer = ''
  socket.on('data', part => {
    answer += part
    if (answer.endsWith('100 Continue\r\n\r\n')) socket.write(more)
    else if (answer.includes(' 200 OK')) socket.end()
  })
  await once(socket, 'close')
  return answer
}
