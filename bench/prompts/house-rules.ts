import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { random, seedOf } from '../../src/base/math/random.ts'

/** Ways of answering that the house wants, each needed by a kind of question. */
export const rules = Array.from({ length: 10 }, (_, at) => `rule-${at}`)

interface Chat {
  readonly messages: readonly { readonly role: string; readonly content: string }[]
}

/**
 * A server with two roles, whose answers are functions of what it is asked. As an assistant it answers a question of
 * kind N rightly if the system message has rule N. Whoever asks it to improve instructions gets them with a rule that
 * an attempt lacked, in three of ten cases with another rule lost.
 */
export async function openHouse(): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    const content = request.method === 'POST' ? answerTo(JSON.parse(body) as Chat) : ''
    const choice = { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }
    const usage = { prompt_tokens: 1, completion_tokens: Math.ceil(content.length / 4) }
    response.setHeader('content-type', 'application/json')
    const models = { data: [{ id: 'house' }] }
    response.end(JSON.stringify(request.method === 'POST' ? { choices: [choice], usage } : models))
  })
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

function answerTo({ messages }: Chat): string {
  const asked = messages.at(-1)!.content
  const kind = /^Question of kind (\d+)\.$/.exec(asked)?.[1]
  if (kind === undefined) return improved(asked)
  const system = messages.find(({ role }) => role === 'system')?.content ?? ''
  return system.split(/\s+/).includes(`rule-${kind}`) ? `answer ${kind}` : 'I do not know.'
}

/** The instructions between the first fences or lines, with what the failed attempts lacked. */
function improved(asked: string): string {
  const [, now = ''] = /(?:```|---)\n([\s\S]*?)\n(?:```|---)/.exec(asked) ?? []
  const kept = now.split(/\s+/).filter(word => rules.includes(word))
  const lacked = [...asked.matchAll(/Question of kind (\d+)\./g)]
    .map(([, kind]) => `rule-${kind}`)
    .filter(rule => !kept.includes(rule))
  const draw = random(seedOf(1, asked))
  if (draw() < 0.3) kept.splice(Math.floor(draw() * kept.length), 1)
  return `\`\`\`\n${['Be helpful.', ...new Set([...kept, ...lacked.slice(0, 1)])].join(' ')}\n\`\`\``
}
