// Rolls over HTTP against a server that speaks SGLang's protocol (the one of our tests, on a free
// port of this machine), keeps a run folder, and exports it as training rows.
//   npx tsx examples/103-server.ts
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { calculator, exportRun, openRenderer, roll } from 'espalier'
import { openSglangServer } from '../test/servers/sglang.ts'

const model = fileURLToPath(new URL('../models/chatml-bytes', import.meta.url))
const { tokenizer } = await openRenderer(model)

// What the served model says: it calls the tool, and some of its answers are off by one.
await using server = await openSglangServer({
  version: () => '7',
  answer({ prompt, seed = 0 }) {
    const text = tokenizer.decode(Int32Array.from(prompt))
    const result = /<tool_response>\n(-?\d+)/.exec(text)?.[1]
    const expression = /What is (.*?)\?/.exec(text)?.[1]
    const call = { name: 'calculate', arguments: { expression } }
    const said = result
      ? String(Number(result) + Number(seed % 3 === 0))
      : `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`
    const ids = [...tokenizer.encode(`${said}<|im_end|>`)]
    return { ids, logprobs: ids.map((_, at) => -0.01 * (1 + (at % 5))), finish: 'stop' }
  },
})

const folder = await mkdtemp(join(tmpdir(), 'espalier-example-'))
const out = join(folder, 'run')
const policy = `sglang:${server.url}`
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
