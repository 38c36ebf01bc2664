// One attempt from task to training row, without a server: a scripted policy calls the calculator
// and answers. Prints what was said, who put which tokens there, and what a trainer trains.
//   npx tsx examples/101-scripted-chain.ts
import { fileURLToPath } from 'node:url'
import { roll } from 'espalier'
import { calculator } from 'espalier/environments'
import { rowsOf } from 'espalier/store'
import { scripted } from 'espalier/testing'
import { openRenderer } from 'espalier/tokens'

// The model folder in the package that spells text byte by byte.
const home = import.meta.resolve('espalier/package.json')
const model = fileURLToPath(new URL('models/chatml-bytes', home))
const { tokenizer } = await openRenderer(model)

const call =
  '<tool_call>\n{"name": "calculate", "arguments": {"expression": "17 * 23"}}\n</tool_call>'
const policy = await scripted([call, '391'])
const tasks = [{ prompt: 'What is 17 * 23?', answer: 391 }]

for await (const group of roll(calculator(), tasks, { policy, model, group: 1 })) {
  for (const { tree, trajectory, reward } of group.members) {
    console.log(`task ${group.task}: ${trajectory.outcome.kind}, reward ${reward.total}\n`)

    // The policy's second prompt begins with its first one and its own answer, token for token.
    for (const { segment, start } of tree.nodes) {
      if (segment.ids.length === 0) continue
      const text = JSON.stringify(tokenizer.decode(segment.ids))
      const shown = text.length > 60 ? `${text.slice(0, 12)} … ${text.slice(-45)}` : text
      console.log(`${segment.origin.padEnd(9)} ${String(start).padStart(5)}  ${shown}`)
    }

    // A chain that was only ever extended is one row; its mask marks what the policy sampled.
    const credits = [{ trajectory: trajectory.id, advantage: 1, weight: 1 }]
    for (const row of rowsOf(tree, { credits })) {
      const trained = row.mask.reduce((sum, bit) => sum + bit, 0)
      console.log(
        `\nrow ${row.index + 1} of ${row.count}: ${row.ids.length} tokens, ${trained} trained`,
      )
      console.log(JSON.stringify(tokenizer.decode(row.ids.filter((_, at) => row.mask[at] === 1))))
    }
  }
}
