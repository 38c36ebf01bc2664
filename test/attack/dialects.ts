import { request } from 'undici'
import { openTestGateway } from '../gateway.ts'
import { badRequest } from '../gateway-fuzz.ts'
import { dicePolicy, openByteRenderer } from '../rolling.ts'
import { type Attack, hold } from './attack.ts'

/** Requests of every dialect of the gateway with places damaged: answered, or refused in words. */
export const dialects: Attack = {
  name: 'gateway dialects',
  promise: 'O1',
  share: 5,
  async open() {
    const renderer = await openByteRenderer()
    const policy = dicePolicy(renderer)
    const limits = { turns: 1_000_000, tokens: 100_000_000 }
    const { url, open } = await openTestGateway({ policy, renderer, most: 1024, parts: { limits } })
    const { token } = await open('dialects')
    return async draw => {
      const seed = Math.floor(draw() * 2 ** 30)
      const { method, path, headers, body } = badRequest(seed, 0, token)
      const answer = await request(`${url}${path}`, {
        method: method as 'POST',
        headers,
        body: method === 'GET' || method === 'OPTIONS' ? null : body,
      })
      const text = await answer.body.text()
      const told = `${method} ${path} ${body.slice(0, 200)}: ${answer.statusCode} ${text.slice(0, 200)}`
      hold(answer.statusCode < 500 || answer.statusCode === 503, told)
    }
  },
}
