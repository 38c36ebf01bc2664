import { expect, it } from 'vitest'
import { bearer, openSaying } from '../../../test/open-gateways.ts'
import { call } from '../../../test/rolling.ts'
import { keepSecret } from '../../base/core/process/secrets.ts'

const secret = 'apricots-of-the-"operator"'
keepSecret(secret)

const said = `<think>\nIt is ${secret}.\n</think>\nTake ${secret} now. ${call('take', { it: secret })}`
const question = { model: 'm', messages: [{ role: 'user', content: `what is ${secret}?` }] }
const tool = { name: 'take', parameters: { type: 'object', properties: {} } }
const { name, parameters } = tool
const asked: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { ...question, tools: [{ type: 'function', function: tool }] },
  '/v1/responses': { input: 'hello', instructions: secret, tools: [{ type: 'function', ...tool }] },
  '/v1/messages': { ...question, max_tokens: 99, tools: [{ name, input_schema: parameters }] },
}

it.each(Object.entries(asked))(
  'H4: %s streams no secret that a policy says, however its tokens split it',
  async (path, body) => {
    const { open, url } = await openSaying([said])
    const { token } = await open('t')
    const headers = { 'content-type': 'application/json', ...bearer(token) }
    const answer = await fetch(`${url}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ ...body, stream: true }),
    })
    const text = await answer.text()
    const words = textsIn(text).join('')
    expect(words).toContain('It is [redacted].')
    expect(words).toContain('Take [redacted] now.')
    expect(text.match(/apricots|operator/g)).toBe(null)
    expect(text).toMatch(/\[redacted\]\\?"/)
  },
)

it('H4: Google’s list streams no secret that a policy says either', async () => {
  const { open, url } = await openSaying([said])
  const { token } = await open('t')
  const answer = await fetch(`${url}/v1beta/models/m:streamGenerateContent`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-goog-api-key': token },
    body: JSON.stringify({
      contents: [{ role: 'user', parts: [{ text: secret }] }],
      tools: [{ functionDeclarations: [{ name }] }],
    }),
  })
  const text = await answer.text()
  expect(JSON.parse(text)).toBeInstanceOf(Array)
  expect(text.match(/apricots|operator/g)).toBe(null)
  expect(text).toContain('{"it":"[redacted]"}')
})

/** The texts of the pieces of a stream, in order. */
function textsIn(stream: string): string[] {
  const pieces = stream.matchAll(
    /"(?:content|reasoning_content|text|thinking|delta)":("(?:[^"\\]|\\.)*")/g,
  )
  return [...pieces].map(([, piece]) => JSON.parse(piece!) as string)
}
