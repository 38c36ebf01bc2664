import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { startOpenEnv, type TestServer } from '../../../../test/openenv-server.ts'
import { FrameReader, opcodes, writeFrame } from './frames.ts'
import { connectSocket, refusalOf } from './handshake.ts'
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

  it('puts parts together however they arrive, and answers pings between them', () => {
    const reader = new FrameReader({ isMasked: true, bytes: 100 })
    const bytes = Buffer.concat([
      writeFrame(opcodes.text, Buffer.from('one'), true),
      writeFrame(opcodes.ping, Buffer.from('?'), true),
    ])
    const frames = [...bytes].flatMap(byte => [...reader.read(Buffer.of(byte))])
    expect(frames.map(({ opcode, payload }) => [opcode, String(payload)])).toEqual([
      [opcodes.text, 'one'],
      [opcodes.ping, '?'],
    ])
  })

  it.each([
    ['an unmasked frame', writeFrame(opcodes.text, Buffer.from('x'), false), 1002],
    ['reserved bits', Buffer.from([0xc1, 0x80, 0, 0, 0, 0]), 1002],
    ['an unknown opcode', Buffer.from([0x83, 0x80, 0, 0, 0, 0]), 1002],
    ['a part of nothing', writeFrame(opcodes.more, Buffer.from('x'), true), 1002],
    ['a ping in parts', Buffer.from([0x09, 0x80, 0, 0, 0, 0]), 1002],
    ['bytes', writeFrame(opcodes.binary, Buffer.from('x'), true), 1003],
    ['no UTF-8', writeFrame(opcodes.text, Buffer.from([0xff]), true), 1007],
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
    const refusal = (method: string, headers: object) => refusalOf({ method, headers } as never)
    expect(refusal('POST', {})).toMatch(/by GET/)
    expect(refusal('GET', { upgrade: 'h2c' })).toMatch(/only WebSockets/)
    expect(refusal('GET', { upgrade: 'websocket', 'sec-websocket-version': '8' })).toMatch(/13/)
    const right = { upgrade: 'websocket', 'sec-websocket-version': '13' }
    expect(refusal('GET', { ...right, 'sec-websocket-key': 'x' })).toMatch(/key/)
    const stop = AbortSignal.abort(new Error('stopped'))
    await expect(connectSocket(url, { signal: stop })).rejects.toThrow('stopped')
  })
})
