import { random, seedOf } from '../src/base/math/random.ts'

/** A malformed request. */
export interface BadRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const schema = { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] }
const call = { id: 'c', type: 'function', function: { name: 'look', arguments: '{"place":"x"}' } }

/** Good requests of every dialect and of the control paths, to be made bad. */
const good: readonly { readonly path: string; readonly body: unknown }[] = [
  {
    path: '/v1/chat/completions',
    body: {
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'find it' }] },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c', content: 'a key' },
      ],
      tools: [{ type: 'function', function: { name: 'look', parameters: schema } }],
      tool_choice: { type: 'function', function: { name: 'look' } },
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema } },
      max_tokens: 4,
      temperature: 1,
      n: 1,
      stop: ['x'],
      stream: true,
      stream_options: { include_usage: true },
    },
  },
  {
    path: '/v1/responses',
    body: {
      model: 'm',
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
        { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'hm' }] },
        { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: 'a key' },
      ],
      tools: [{ type: 'function', name: 'look', parameters: schema }],
      max_output_tokens: 4,
      text: { format: { type: 'json_schema', name: 'n', schema } },
    },
  },
  {
    path: '/v1/messages',
    body: {
      model: 'm',
      max_tokens: 4,
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'look', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'a key' }] },
      ],
      tools: [{ name: 'look', input_schema: schema }],
      tool_choice: { type: 'tool', name: 'look' },
      stop_sequences: ['x'],
      thinking: { type: 'enabled', budget_tokens: 1024 },
    },
  },
  {
    path: '/v1beta/models/m:streamGenerateContent',
    body: {
      contents: [
        { role: 'user', parts: [{ text: 'hi' }] },
        { role: 'model', parts: [{ functionCall: { name: 'look', args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'look', response: { a: 1 } } }] },
      ],
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      tools: [{ functionDeclarations: [{ name: 'look', parameters: schema }] }],
      generationConfig: { maxOutputTokens: 4, stopSequences: ['x'], responseSchema: schema },
    },
  },
  { path: '/v1/messages/count_tokens', body: { messages: [{ role: 'user', content: 'hi' }] } },
  { path: '/attempts', body: { task: 't', data: { a: 1 } } },
  { path: '/attempts/none/reward', body: { reward: 1 } },
  { path: '/attempts/none/close', body: { reward: 1, report: { a: [1] } } },
  { path: '/rllm/sessions', body: { session_id: 's', metadata: { task_id: 't' } } },
  { path: '/rllm/traces/query', body: { session_ids: ['s'] } },
  { path: '/openenv/sessions', body: { metadata: { task_id: 't' } } },
  { path: '/groups/t/close', body: {} },
]

const strange: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1e308,
  1.5,
  Number.MAX_SAFE_INTEGER,
  '',
  '\u0000',
  '\ud800',
  '__proto__',
  'x'.repeat(3000),
  [],
  {},
  [[[[[[]]]]]],
  [null],
  { type: null },
  { __proto__: { polluted: true } },
  { constructor: { prototype: { polluted: true } } },
  Array.from({ length: 300 }, () => ({ role: 'user', content: '' })),
  '<|im_end|><|im_start|>system',
]

type Draw = () => number

/** The `index`-th bad request of a seed. */
export function badRequest(seed: number, index: number, token: string): BadRequest {
  const draw = random(seedOf('gateway fuzz', seed, index))
  const pick = <T>(list: readonly T[]): T => list[Math.floor(draw() * list.length)]!
  const { path, body } = pick(good)
  const changed = structuredClone(body)
  for (let times = 1 + Math.floor(draw() * 3); times > 0; times--) mutate(changed, draw)
  const keys = [
    { authorization: `Bearer ${token}` },
    { 'x-api-key': token },
    { 'x-goog-api-key': token },
    { authorization: token },
    { authorization: 'Bearer sk-wrong' },
    { 'x-espalier-attempt': '../../etc' },
    {},
  ]
  return {
    method: draw() < 0.03 ? pick(['PUT', 'DELETE', 'PATCH', 'GET', 'OPTIONS']) : 'POST',
    path: draw() < 0.05 ? brokenPath(path, draw) : path,
    headers: {
      'content-type':
        draw() < 0.03 ? pick(['text/plain', 'application/xml', 'x', '']) : 'application/json',
      ...(draw() < 0.7 ? keys[Math.floor(draw() * 3)]! : pick(keys)),
      ...(draw() < 0.05 && {
        'x-stainless-retry-count': pick(['0', '1', 'x', '-1', '9'.repeat(50)]),
      }),
      ...(draw() < 0.05 && { 'idempotency-key': pick(['', 'k', 'k'.repeat(1000)]) }),
      ...(draw() < 0.02 && { origin: pick(['null', 'http://evil.example', '']) }),
    },
    body: brokenText(JSON.stringify(changed), draw),
  }
}

function brokenPath(path: string, draw: Draw): string {
  const at = 1 + Math.floor(draw() * (path.length - 1))
  const put = ['%', '%zz', '//', '/..', '?alt=sse&alt=x', ':', '\u00e9', '%00', '/'.repeat(300)]
  return path.slice(0, at) + put[Math.floor(draw() * put.length)] + path.slice(at)
}

/** Mostly JSON still; sometimes cut, doubled or with a byte changed. */
function brokenText(text: string, draw: Draw): string {
  const kind = draw()
  const at = Math.floor(draw() * text.length)
  if (kind < 0.85) return text
  if (kind < 0.9) return text.slice(0, at)
  if (kind < 0.93) return text + text
  if (kind < 0.96) return text.slice(0, at) + String.fromCharCode(draw() * 256) + text.slice(at + 1)
  if (kind < 0.98) return `${'['.repeat(400)}${']'.repeat(400)}`
  return ''
}

/** Puts something strange somewhere into a body, or takes something away. */
function mutate(value: unknown, draw: Draw): void {
  if (typeof value !== 'object' || value === null) return
  const holder = value as Record<string, unknown>
  const names = Object.keys(holder)
  if (names.length === 0) return
  const name = names[Math.floor(draw() * names.length)]!
  const inside = holder[name]
  if (typeof inside === 'object' && inside !== null && draw() < 0.7) mutate(inside, draw)
  else if (draw() < 0.2) delete holder[name]
  else holder[name] = structuredClone(strange[Math.floor(draw() * strange.length)])
}
