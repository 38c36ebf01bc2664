// Runs one of the test servers as a process of its own: tsx test/servers/main.ts sglang --port 0
import { parseArgs } from 'node:util'
import { openLlamaCppServer } from './llama-cpp.ts'
import { openOpenAiChatServer } from './openai-chat.ts'
import { openSglangServer } from './sglang.ts'
import { openVllmServer } from './vllm.ts'

const protocols = {
  sglang: openSglangServer,
  vllm: openVllmServer,
  'llama-cpp': openLlamaCppServer,
  openai: openOpenAiChatServer,
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    port: { type: 'string', default: '0' },
    latency: { type: 'string', default: '0' },
    pace: { type: 'string', default: '0' },
    tokens: { type: 'string', default: '64' },
  },
})
const open = protocols[positionals[0] as keyof typeof protocols]
if (!open) {
  console.error(`Which protocol? One of ${Object.keys(protocols).join(', ')}.`)
  process.exit(2)
}
const server = await open({
  port: Number(values.port),
  latency: Number(values.latency),
  pace: Number(values.pace),
  tokens: Number(values.tokens),
  remember: false,
})
// Whoever started it reads where it listens.
console.log(JSON.stringify({ url: server.url }))
