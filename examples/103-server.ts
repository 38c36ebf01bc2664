// Rolls over HTTP against a server that speaks as much of SGLang's protocol as it takes to roll, on a
// free port of this machine; keeps a run folder, and exports it as training rows.
//   npx tsx examples/103-server.ts
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { exportRun, roll } from 'espalier'
import { calculator } from 'espalier/environments'
import { openRenderer } from 'espalier/tokens'

// The model folder in the package that spells text byte by byte.
const home = import.meta.resolve('espalier/package.json')
const model = fileURLToPath(new URL('models/chatml-bytes', home))
const { tokenizer } = await openRenderer(model)

// What the served model says: it calls the tool, and some of its answers are off by one.
function say(prompt: string, seed: number): string {
  const result = /<tool_response>\n(-?\d+)/.exec(prompt)?.[1]
  if (result) return String(Number(result) + Number(seed % 3 === 0))
  const expression = /What is (.*?)\?/.exec(prompt)?.[1]
  const call = { name: 'calculate', arguments: { expression } }
  return `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`
}

interface Asked {
  readonly input_ids: readonly number[]
  readonly sampling_params: { readonly sampling_seed?: number }
}

// Token ids in; token ids, their log-probabilities and the version of the weights out.
function generate({ input_ids, sampling_params: { sampling_seed = 0 } }: Asked): object {
  const said = say(tokenizer.decode(Int32Array.from(input_ids)), sampling_seed)
  const output_ids = [...tokenizer.encode(`${said}<|im_end|>`)]
  const meta_info = {
    finish_reason: { type: 'stop', matched: output_ids.at(-1) },
    prompt_tokens: input_ids.length,
    completion_tokens: output_ids.length,
    weight_version: '7',
    output_token_logprobs: output_ids.map((id, at) => [-0.01 * (1 + (at % 5)), id, null]),
  }
  return { output_ids, meta_info }
}

const server = createServer(async (request, response) => {
  const answer = (value: object, code = 200): void => {
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  }
  if (request.url === '/generate') answer(generate((await json(request)) as Asked))
  else if (request.url === '/get_model_info') answer({ model_path: model, weight_version: '7' })
  else if (request.url === '/server_info') answer({ context_length: 4096 })
  else answer({ error: `no ${request.url} here` }, 404)
})
await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo

const folder = await mkdtemp(join(tmpdir(), 'espalier-example-'))
const out = join(folder, 'run')
const policy = `sglang:http://127.0.0.1:${port}`
for await (const group of roll(calculator(), 4, { policy, model, group: 4, seed: 1, out })) {
  const members = group.members.map(
    ({ reward, advantage }) => `${reward.total} (${advantage?.toFixed(2)})`,
  )
  console.log(`${group.task}  rewards with advantages  ${members.join('  ')}`)
}

const rows = join(folder, 'rows.jsonl')
const { rows: count, leftOut } = await exportRun(out, { to: 'jsonl', out: rows })
const first = JSON.parse((await readFile(rows, 'utf8')).split('\n')[0]!)
console.log(`\n${count} rows, left out ${JSON.stringify(leftOut)}; the first one:`)
console.log(`  origins ${JSON.stringify(first.origins)}`)
console.log(`  versions ${JSON.stringify(first.versions)}`)
console.log(
  `  sampled ${JSON.stringify(tokenizer.decode(Int32Array.from(first.ids.filter((_: number, at: number) => first.mask[at]))))}`,
)
await rm(folder, { recursive: true })
server.close()
server.closeAllConnections()
