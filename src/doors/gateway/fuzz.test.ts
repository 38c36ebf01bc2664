import { connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { expect, it } from 'vitest'
import { openCountingPolicy } from '../../../test/counting-policy.ts'
import { openTestGateway } from '../../../test/gateway.ts'
import { badRequest } from '../../../test/gateway-fuzz.ts'
import { openByteRenderer } from '../../../test/rolling.ts'

const count = process.env.ESPALIER_SOAK ? 100_000 : 800
const seed = Number(process.env.ESPALIER_FUZZ_SEED ?? 1)
const most = 64 * 1024 * 1024

it('answers malformed requests in words, and neither breaks, hangs nor keeps anything of them', {
  timeout: 3_600_000,
}, async () => {
  const renderer = await openByteRenderer()
  const end = renderer.stopIds[0]!
  const { policy } = openCountingPolicy({ length: () => 3, end })
  await using gateway = await openTestGateway({
    policy,
    renderer,
    most: 64,
    parts: { limits: { turns: 1_000_000, tokens: 100_000_000 } },
  })
  await using agent = disposable(
    new Agent({ connections: 16, bodyTimeout: 20_000, headersTimeout: 20_000 }),
  )
  const statuses = new Map<number, number>()
  let { token } = await gateway.open('fuzz 0')
  const before = process.memoryUsage().heapUsed
  const send = async (index: number): Promise<void> => {
    const { method, path, headers, body } = badRequest(seed, index, token)
    const answer = await request(`${gateway.url}${path}`, {
      method: method as 'POST',
      headers,
      body: method === 'GET' || method === 'OPTIONS' ? null : body,
      dispatcher: agent.value,
    }).catch((cause: unknown) => cause as Error)
    if (answer instanceof Error)
      throw new Error(`request ${index} of seed ${seed}`, { cause: answer })
    const text = await answer.body.text()
    statuses.set(answer.statusCode, (statuses.get(answer.statusCode) ?? 0) + 1)
    if (answer.statusCode >= 500 && answer.statusCode !== 503) {
      throw new Error(
        `request ${index} of seed ${seed} was answered ${answer.statusCode}: ${text.slice(0, 300)}`,
      )
    }
    if (answer.statusCode >= 400) expect(JSON.parse(text)).toHaveProperty('error')
  }
  for (let index = 0; index < count; index += 16) {
    await Promise.all(
      Array.from({ length: Math.min(16, count - index) }, (_, at) => send(index + at)),
    )
    if (index % 1024 === 0) {
      // What one attempt captured is let go of with it.
      for (const attempt of gateway.gateway.attempts.list()) {
        await gateway.gateway.attempts.remove(attempt)
      }
      gateway.trees.length = 0
      gateway.groups.length = 0
      ;({ token } = await gateway.open(`fuzz ${index}`))
    }
  }
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  expect(statuses.get(200) ?? 0).toBeGreaterThan(count / 100)
  expect(statuses.get(400) ?? 0).toBeGreaterThan(count / 4)
  const { status } = await gateway.send(
    '/v1/chat/completions',
    { messages: [{ role: 'user', content: 'x' }] },
    { authorization: `Bearer ${token}` },
  )
  expect(status).toBe(200)
  const running = gateway.gateway.attempts.list().map(attempt => attempt.running)
  expect(running.every(each => each === 0)).toBe(true)
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(most * 4)
})

it('survives bytes that are no HTTP at all, and clients that stop in the middle', async () => {
  const renderer = await openByteRenderer()
  const { policy } = openCountingPolicy({ length: () => 3, end: renderer.stopIds[0]! })
  await using gateway = await openTestGateway({ policy, renderer })
  const { port } = new URL(gateway.url)
  const texts = [
    '\u0000\u0001\u0002',
    'GET',
    'POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99999\r\n\r\n{',
    'POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -1\r\n\r\n',
    'POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    `GET /${'a'.repeat(100_000)} HTTP/1.1\r\n\r\n`,
    `GET / HTTP/1.1\r\n${'x: y\r\n'.repeat(20_000)}\r\n`,
  ]
  for (const text of texts) {
    const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined)
    socket.write(text)
    await nextTurn()
    socket.destroy()
  }
  expect((await gateway.send('/health')).body).toEqual({ status: 'ok' })
})

function disposable(value: Agent) {
  return { value, [Symbol.asyncDispose]: () => value.destroy() }
}
