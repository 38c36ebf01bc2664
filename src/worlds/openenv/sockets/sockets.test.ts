import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { startOpenEnv, type TestServer } from '../../../../test/openenv-server.ts'
import { connectSocket } from './handshake.ts'
import type { SocketEnd, TextSocket } from './text-socket.ts'

const { signal } = new AbortController()
const closing: AsyncDisposable[] = []
afterEach(async () => {
  for (const each of closing.splice(0)) await each[Symbol.asyncDispose]()
})

/** A server that repeats texts, and how its sockets ended. */
async function echo(): Promise<TestServer & { readonly ended: Promise<SocketEnd> }> {
  let tell: (end: SocketEnd) => void
  const ended = new Promise<SocketEnd>(resolve => {
    tell = resolve
  })
  const server = await startOpenEnv(
    () => ({ status: 200, body: {} }),
    socket => socket.listen({ text: text => socket.send(text), ended: tell }),
  )
  closing.push(server)
  return { ...server, ended }
}

function next(socket: TextSocket): { text: Promise<string>; ended: Promise<SocketEnd> } {
  let give: (text: string) => void
  let end: (end: SocketEnd) => void
  const text = new Promise<string>(resolve => (give = resolve))
  const ended = new Promise<SocketEnd>(resolve => (end = resolve))
  socket.listen({ text: each => give(each), ended: each => end(each) })
  return { text, ended }
}

describe('a socket', () => {
  it.each([0, 125, 126, 65_535, 65_536, 300_000])(
    'carries %i characters there and back',
    async size => {
      const server = await echo()
      const socket = await connectSocket(server.url, { signal })
      const { text, ended } = next(socket)
      const sent = 'ä'.repeat(size)
      socket.send(sent)
      expect(await text).toBe(sent)
      socket.close(1000, 'done')
      expect(await ended).toMatchObject({ code: 1000 })
      expect(await server.ended).toEqual({ code: 1000, reason: 'done' })
    },
  )

  it.each([
    ['an unmasked frame', Buffer.from([0x81, 1, 0x78]), 1002],
    ['reserved bits', Buffer.from([0xc1, 0x80, 0, 0, 0, 0]), 1002],
    ['an unknown opcode', Buffer.from([0x83, 0x80, 0, 0, 0, 0]), 1002],
    ['a part of nothing', masked(0x80, 'x'), 1002],
    ['a ping in parts', Buffer.from([0x09, 0x80, 0, 0, 0, 0]), 1002],
    ['bytes', masked(0x82, 'x'), 1003],
    ['no UTF-8', masked(0x81, [0xff]), 1007],
    ['a message in too many parts', partsOf(20_000), 1008],
    ['a length beyond all bounds', Buffer.from([0x81, 0xff, 0xff, ...Array(11).fill(0)]), 1009],
  ])('is ended by %s', async (_, bytes, code) => {
    const server = await echo()
    const { port } = new URL(server.url)
    const raw = connect(Number(port), '127.0.0.1')
    raw.write(
      'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    )
    await once(raw, 'data')
    raw.write(bytes)
    expect((await server.ended).code).toBe(code)
    raw.destroy()
  })

  it('is not opened by what is no WebSocket', async () => {
    const { url } = await echo()
    for (const headers of [{ upgrade: 'h2c' }, { ...right, 'sec-websocket-key': 'x' }]) {
      const asked = request(url, { headers: { connection: 'Upgrade', ...headers } }).end()
      const [answer] = (await once(asked, 'response')) as [{ statusCode: number }]
      expect(answer.statusCode).toBe(400)
    }
    const stop = AbortSignal.abort(new Error('stopped'))
    await expect(connectSocket(url, { signal: stop })).rejects.toThrow('stopped')
    const plain = createServer((_, response) => response.end()).listen(0)
    const { port } = plain.address() as AddressInfo
    const none = connectSocket(`http://127.0.0.1:${port}`, { signal })
    await expect(none).rejects.toThrow('does not open a WebSocket: it answered 200')
    plain.close()
  })
})

const right = { upgrade: 'websocket', 'sec-websocket-version': '13' }

/** A frame of a client with a key of zeros. */
function masked(first: number, payload: string | number[]): Buffer {
  const bytes = Buffer.from(payload as string)
  return Buffer.concat([Buffer.from([first, 0x80 | bytes.length, 0, 0, 0, 0]), bytes])
}

/** A message that comes a byte at a time. */
function partsOf(count: number): Buffer {
  return Buffer.concat([masked(0x01, 'x'), ...Array(count).fill(masked(0x00, 'x'))])
}
