// A server that says the same to every request, whole or streamed: SGLang's /generate and OpenAI's chat completions.
// node model.mjs MODEL_FOLDER IDS_JSON TEXT
import { createServer } from 'node:http'

const [folder, idsText, text] = process.argv.slice(2)
const ids = JSON.parse(idsText)
const usage = { prompt_tokens: 1, completion_tokens: ids.length, total_tokens: 1 + ids.length }

function generated(count) {
  const part = ids.slice(0, count)
  return {
    text: '',
    output_ids: part,
    meta_info: {
      id: 'bench',
      finish_reason: count === ids.length ? { type: 'stop', matched: ids.at(-1) } : null,
      completion_tokens: count,
      cached_tokens: 0,
      weight_version: '1',
      output_token_logprobs: part.map((id, index) => [-0.1234567 - index / 1000, id, null]),
    },
  }
}

const message = { role: 'assistant', content: text }
const chat = {
  id: 'bench',
  object: 'chat.completion',
  created: 0,
  model: 'bench',
  choices: [{ index: 0, message, finish_reason: 'stop', logprobs: null }],
  usage,
}
const pieces = ids.slice(0, -1).map((_, index) => ({
  id: 'bench',
  object: 'chat.completion.chunk',
  created: 0,
  model: 'bench',
  choices: [{ index: 0, delta: { content: text[index % text.length] }, finish_reason: null }],
}))

const whole = {
  '/generate': Buffer.from(JSON.stringify(generated(ids.length))),
  '/v1/chat/completions': Buffer.from(JSON.stringify(chat)),
}
const streamed = {
  '/generate': ids.map((_, index) => `data: ${JSON.stringify(generated(index + 1))}\n\n`),
  '/v1/chat/completions': pieces.map(piece => `data: ${JSON.stringify(piece)}\n\n`),
}
const others = {
  '/model_info': { model_path: folder, weight_version: '1' },
  '/get_model_info': { model_path: folder, weight_version: '1' },
  '/server_info': { model_path: folder, context_length: 10_000_000 },
  '/get_server_info': { model_path: folder, context_length: 10_000_000 },
  '/v1/models': { object: 'list', data: [{ id: 'bench', object: 'model', owned_by: 'bench' }] },
  '/health': {},
}

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    if (request.method === 'GET') {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(others[request.url] ?? {}))
      return
    }
    // Only the ends are looked at, so that long bodies cost no more than their bytes.
    const ends = `${chunks[0]?.subarray(0, 400)}${chunks.at(-1)?.subarray(-400)}`
    if (!/"stream": ?true/.test(ends)) {
      response.setHeader('content-type', 'application/json')
      response.end(whole[request.url] ?? '{}')
      return
    }
    response.setHeader('content-type', 'text/event-stream')
    const events = streamed[request.url] ?? []
    let next = 0
    const send = () => {
      if (next < events.length) {
        response.write(events[next++])
        setImmediate(send)
      } else response.end('data: [DONE]\n\n')
    }
    send()
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))
