// Runs the Claude Agent SDK against a gateway, with a policy that makes one shell call and then answers, and prints what was
// captured: npx tsx scripts/claude-agent.ts FOLDER, where FOLDER was made with `npm i @anthropic-ai/claude-agent-sdk`.
import { resolve } from 'node:path'
import { type Policy, plainCapabilities, type SampleRequest } from '../src/base/core/policy.ts'
import { sampled } from '../src/base/core/segment.ts'
import { openTestGateway } from '../test/gateway.ts'
import { call, openByteRenderer } from '../test/rolling.ts'

const folder = process.argv[2]
if (!folder) {
  console.error('usage: npx tsx scripts/claude-agent.ts FOLDER')
  process.exit(2)
}
type Query = (asked: { prompt: string; options: object }) => AsyncIterable<{
  readonly type: string
  readonly result?: string
}>
const module = resolve(folder, 'node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs')
const { query } = (await import(module)) as { query: Query }

const renderer = await openByteRenderer()
let asked = 0

/** A scripted model's answers: first a tool call, then what it saw. */
function textFor({ prompt: { messages, tools } }: SampleRequest): string {
  asked++
  if (messages.at(-1)?.role === 'tool') return 'There are three pears.<|im_end|>'
  const hasShell = tools.some(tool => tool.function.name === 'Bash')
  const look = { command: 'echo three pears', description: 'Counts the pears' }
  return hasShell ? call('Bash', look) : 'Pears<|im_end|>'
}

const policy: Policy = {
  name: 'pears',
  capabilities: plainCapabilities,
  async sample(request) {
    const ids = renderer.tokenizer.encode(textFor(request))
    const usage = { prompt: request.prompt.ids.length, sampled: ids.length, seconds: 0 }
    const segment = sampled({ ids, logprobs: null, version: { from: 0, to: 0 } })
    return { kind: 'tokens', segment, finish: { kind: 'stop' }, usage }
  },
  describe: async () => ({ model: 'pears' }),
  async [Symbol.asyncDispose]() {},
}

const room = { turns: 64, tokens: 1_000_000, context: 2_000_000, newTokens: 4096 }
await using gateway = await openTestGateway({ policy, renderer, parts: { limits: room } })
const { id, token, urls } = await gateway.open('pears')
const env = { ...process.env, ANTHROPIC_BASE_URL: urls.anthropic, ANTHROPIC_API_KEY: token }
const options = { env, maxTurns: 8, allowedTools: ['Bash'] }
let result = ''
for await (const message of query({ prompt: 'How many pears are there?', options })) {
  if (message.type === 'result') result = message.result ?? ''
}
await gateway.send(`/attempts/${id}/close`, { reward: Number(result.includes('three')) })
const [trajectory] = gateway.trees[0]!.trajectories
console.log(`it said "${result}"; ${asked} samples, ${trajectory!.turns.length} turns kept`)
console.log(`fidelity ${trajectory!.fidelity.kind}`, trajectory!.fidelity.forks)
console.log(`calls ${trajectory!.calls.map(({ tool, output }) => `${tool}: ${output}`).join('; ')}`)
process.exit(result.includes('three pears') ? 0 : 1)
