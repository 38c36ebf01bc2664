import type { AssistantMessage, Message } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import type { ChatAnswer, ChatDelta, ChatRequest } from '../contract.ts'
import { type Answerer, answerRoute, type Outlet } from './answer.ts'
import { ResponseMemory } from './openai/response-memory.ts'
import { routeOf } from './routes.ts'

const call = (id: string, given: string) => ({
  id,
  type: 'function' as const,
  function: { name: 'look', arguments: given },
})

const said: AssistantMessage = {
  role: 'assistant',
  content: 'I look.',
  reasoning_content: 'Where is it?',
  tool_calls: [call('call_1', '{"place":"here"}'), call('call_2', '{"place":"there"}')],
}

const answer = (message: AssistantMessage): ChatAnswer => ({
  id: 'a',
  message,
  finish: message.tool_calls ? 'tool-calls' : 'stop',
  usage: { prompt: 7, sampled: 3 },
  unmet: [],
  tokens: {
    prompt: Int32Array.of(1, 2),
    sampled: Int32Array.of(3, 4),
    logprobs: Float32Array.of(-1, -2),
    version: 0,
  },
})

/** Sends one body; gives its status, its body or its events, and what the policy was asked. */
async function send(
  path: string,
  body: unknown,
  { message = said, memory = new ResponseMemory() } = {},
) {
  const asked: ChatRequest[] = []
  const told: unknown[] = []
  let status = 0
  let text = ''
  const outlet: Outlet = {
    body: (code, value) => {
      status = code
      told.push(JSON.parse(JSON.stringify(value)))
    },
    begin: () => {
      status = 200
    },
    send: piece => {
      text += piece
    },
    end: () => undefined,
  }
  const answerer: Answerer = {
    model: 'tiny',
    memory,
    async respond(request, onDelta) {
      asked.push(request)
      for (const delta of deltasOf(message)) onDelta?.(delta)
      return [answer(message)]
    },
    countTokens: async request => request.messages.length,
  }
  const route = routeOf('POST', path, {})
  if (!route) throw new Error(`no route for ${path}`)
  await answerRoute(route, { body, id: 'x', now: 0 }, { answerer, outlet })
  return { status, body: told[0] as Record<string, unknown>, text, asked: asked[0]! }
}

function deltasOf({ content, reasoning_content, tool_calls = [] }: AssistantMessage): ChatDelta[] {
  return [
    { kind: 'reasoning', answer: 0, text: reasoning_content ?? '' },
    { kind: 'text', answer: 0, text: String(content) },
    ...tool_calls.map(({ id, function: { name, arguments: given } }, index) => ({
      kind: 'call' as const,
      answer: 0,
      index,
      id,
      name,
      arguments: given,
    })),
  ]
}

const results: readonly Message[] = [
  { role: 'tool', tool_call_id: 'call_1', content: 'a key' },
  { role: 'tool', tool_call_id: 'call_2', content: 'nothing' },
]

const schema = { type: 'object', properties: { place: { type: 'string' } } }

/** How one conversation is written in each dialect: what was asked, answered, and given back. */
const dialects = {
  'openai-chat': {
    path: '/v1/chat/completions',
    first: {
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'find it' }] },
      ],
      tools: [{ type: 'function', function: { name: 'look', parameters: schema } }],
    },
    next: (first: Record<string, unknown>, body: Record<string, unknown>) => ({
      ...first,
      messages: [
        ...(first.messages as unknown[]),
        (body.choices as { message: unknown }[])[0]!.message,
        ...results,
      ],
    }),
  },
  'openai-responses': {
    path: '/v1/responses',
    first: {
      instructions: 'Be brief.',
      input: 'find it',
      tools: [{ type: 'function', name: 'look', parameters: schema }],
    },
    next: (first: Record<string, unknown>, body: Record<string, unknown>) => ({
      ...first,
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'find it' }] },
        ...(body.output as unknown[]),
        { type: 'function_call_output', call_id: 'call_1', output: 'a key' },
        { type: 'function_call_output', call_id: 'call_2', output: 'nothing' },
      ],
    }),
  },
  anthropic: {
    path: '/v1/messages',
    first: {
      max_tokens: 10,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      messages: [{ role: 'user', content: 'find it' }],
      tools: [{ name: 'look', input_schema: schema }],
    },
    next: (first: Record<string, unknown>, body: Record<string, unknown>) => ({
      ...first,
      messages: [
        ...(first.messages as unknown[]),
        { role: 'assistant', content: body.content },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'call_1', content: 'a key' },
            {
              type: 'tool_result',
              tool_use_id: 'call_2',
              content: [{ type: 'text', text: 'nothing' }],
            },
          ],
        },
      ],
    }),
  },
  google: {
    path: '/v1beta/models/tiny:generateContent',
    first: {
      system_instruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ role: 'user', parts: [{ text: 'find it' }] }],
      tools: [
        {
          functionDeclarations: [
            {
              name: 'look',
              parameters: { type: 'OBJECT', properties: { place: { type: 'STRING' } } },
            },
          ],
        },
      ],
    },
    next: (first: Record<string, unknown>, body: Record<string, unknown>) => ({
      ...first,
      contents: [
        ...(first.contents as unknown[]),
        (body.candidates as { content: unknown }[])[0]!.content,
        {
          role: 'user',
          parts: [
            { functionResponse: { id: 'call_1', name: 'look', response: { output: 'a key' } } },
            { functionResponse: { name: 'look', response: { output: 'nothing' } } },
          ],
        },
      ],
    }),
  },
}

const withoutNames = (messages: readonly Message[]): unknown[] =>
  messages.map(message => ({ ...message, name: undefined }))

describe.each(Object.entries(dialects))('%s', (_name, { path, first, next }) => {
  it('reads back what it wrote: words, reasoning and calls are one message again', async () => {
    const opening = await send(path, first)
    expect(opening.status).toBe(200)
    expect(opening.asked.messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'find it' },
    ])
    expect(opening.asked.tools).toEqual([
      { type: 'function', function: { name: 'look', parameters: schema } },
    ])
    const { asked } = await send(path, next(first, opening.body))
    expect(withoutNames(asked.messages)).toEqual(
      withoutNames([...opening.asked.messages, said, ...results]),
    )
  })

  it('refuses an unknown role in its own shape, with a message that names the place', async () => {
    const list = path.includes('google') || path.includes('models') ? 'contents' : 'messages'
    const name = path.includes('responses') ? 'input' : list
    const { status, body } = await send(path, {
      ...first,
      [name]: [{ role: 'wizard', content: 'x', parts: [{ text: 'x' }] }],
    })
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain(`${name}[0].role`)
  })
})

describe('the dialects', () => {
  it.each([
    ['/v1/chat/completions', {}, 'messages is missing or empty'],
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }], n: 0 }, 'n must be'],
    [
      '/v1/chat/completions',
      { messages: [{ role: 'user', content: 'x' }], logit_bias: { 3: 4 } },
      'logit_bias is not possible',
    ],
    [
      '/v1/chat/completions',
      {
        messages: [{ role: 'user', content: 'x' }],
        tool_choice: { type: 'function', function: { name: 'go' } },
      },
      'which is not in tools',
    ],
    ['/v1/responses', { input: 'x', previous_response_id: 'resp_9' }, 'names no response'],
    ['/v1/responses', { input: 'x', tools: [{ type: 'web_search' }] }, 'only function tools'],
    ['/v1/messages', { messages: [{ role: 'user', content: 'x' }] }, 'max_tokens is missing'],
    [
      '/v1/messages',
      { max_tokens: 1, messages: [{ role: 'assistant', content: 'x' }] },
      'cannot be begun',
    ],
    [
      '/v1/messages',
      {
        max_tokens: 1,
        thread: { type: 'continue', previous_message_id: 'msg_1' },
        messages: [{ role: 'user', content: 'x' }],
      },
      '"details":{"error_code":"thread_unsupported_request"}',
    ],
    [
      '/v1beta/models/m:generateContent',
      { contents: [{ parts: [{ functionResponse: { name: 'look', response: {} } }] }] },
      'no call waiting',
    ],
    ['/v1beta/models/m:generateContent', [], 'the body must be a JSON object'],
  ])('%s refuses %j: %s', async (path, body, words) => {
    const answered = await send(path, body)
    expect(answered.status).toBe(400)
    expect(JSON.stringify(answered.body)).toContain(words)
  })

  it('follows references to earlier responses and their items', async () => {
    const memory = new ResponseMemory()
    const { body, asked } = await send('/v1/responses', dialects['openai-responses'].first, {
      memory,
    })
    const outputs = results.map(message => ({
      type: 'function_call_output',
      call_id: (message as { tool_call_id: string }).tool_call_id,
      output: message.content,
    }))
    const byResponse = await send(
      '/v1/responses',
      { instructions: 'Be brief.', previous_response_id: body.id, input: outputs },
      { memory },
    )
    expect(byResponse.asked.messages).toEqual([...asked.messages, said, ...results])
    const references = (body.output as { id: string }[]).map(({ id }) => ({
      type: 'item_reference',
      id,
    }))
    const byItem = await send(
      '/v1/responses',
      {
        instructions: 'Be brief.',
        input: [{ role: 'user', content: 'find it' }, ...references, ...outputs],
      },
      { memory },
    )
    expect(byItem.asked.messages).toEqual([...asked.messages, said, ...results])
  })

  it('signs reasoning in Anthropic, whole and streamed: its clients send back only what is signed', async () => {
    const { body } = await send('/v1/messages', dialects.anthropic.first)
    const [thinking] = body.content as Record<string, unknown>[]
    expect(thinking).toMatchObject({ type: 'thinking', thinking: 'Where is it?' })
    expect(thinking!.signature).not.toBe('')
    const { text } = await send('/v1/messages', { ...dialects.anthropic.first, stream: true })
    const deltas = text
      .split('\n')
      .filter(line => line.includes('"delta"'))
      .map(line => JSON.parse(line.slice('data: '.length)).delta)
    expect(deltas.slice(0, 3)).toEqual([
      { type: 'thinking_delta', thinking: 'Where is it?' },
      { type: 'signature_delta', signature: thinking!.signature },
      { type: 'text_delta', text: 'I look.' },
    ])
  })

  it('counts tokens where the dialect does', async () => {
    const { body } = await send('/v1/messages/count_tokens', {
      messages: [{ role: 'user', content: 'x' }],
    })
    expect(body).toEqual({ input_tokens: 1 })
    const google = await send('/v1beta/models/m:countTokens', dialects.google.first)
    expect(google.body).toEqual({ totalTokens: 2 })
  })
})
