// A search tree over one task, without a server: every turn is continued twice, in forked worlds, and
// what the continuations share is stored and trained once. Prints the tree and what a trainer is given.
//   npx tsx examples/201-tree.ts

import { fileURLToPath } from 'node:url'
import { roll } from 'espalier'
import { calculator, withFork } from 'espalier/environments'
import { openBranchPolicy, rollTree } from 'espalier/policies'
import { rowsOf } from 'espalier/store'
import { scripted } from 'espalier/testing'
import { openRenderer } from 'espalier/tokens'

// The model folder in the package that spells text byte by byte.
const home = import.meta.resolve('espalier/package.json')
const model = fileURLToPath(new URL('models/chatml-bytes', home))
const renderer = await openRenderer(model)

// A policy with two possible answers: the seed of each sample chooses one.
const call = (expression: string): string =>
  `<tool_call>\n{"name": "calculate", "arguments": {"expression": "${expression}"}}\n</tool_call>`
const careful = await scripted([call('17 * 23'), '391'])
const hasty = await scripted([call('17 + 23'), '40'])
const policy: typeof careful = {
  ...careful,
  sample: (request, given) => (request.seed % 2 === 0 ? careful : hasty).sample(request, given),
}

const strategy = rollTree({
  branch: openBranchPolicy('fixed:width=2,depth=2', renderer.vocabulary),
  leaves: 4,
})
const environment = withFork(calculator())
const tasks = [{ prompt: 'What is 17 * 23?', answer: 391 }]
// One tree; its endings are compared with each other.
const options = { policy, model, strategy, group: 1, advantage: 'tree-grpo', seed: 2 }

for await (const { members } of roll(environment, tasks, options)) {
  const { tree } = members[0]!
  tree.nodes.forEach(({ segment, parent }, node) => {
    if (segment.origin !== 'sampled') return
    const said = renderer.decode(segment.ids).replaceAll('\n', ' ').slice(0, 80)
    console.log(
      `node ${String(node).padStart(2)}  after node ${String(parent.node).padStart(2)}  ${said}`,
    )
  })

  console.log('\nendings')
  for (const { trajectory, reward, advantage } of members) {
    const answer = String(trajectory.messages.at(-1)!.content)
    console.log(
      `${trajectory.id}  answers ${answer.padEnd(4)} reward ${reward.total}  advantage ${advantage!.toFixed(3)}  share ${trajectory.share}`,
    )
  }

  // Each sampled token is in one row, with the endings that pass through it.
  console.log('\nrows')
  const credits = members.map(({ trajectory, advantage, weight }) => ({
    trajectory: trajectory.id,
    advantage: advantage!,
    weight,
  }))
  for (const row of rowsOf(tree, { credits })) {
    const trained = row.mask.reduce((sum, bit) => sum + bit, 0)
    const runs = row.passages.map(({ start, end, value }) => {
      const advantage = row.advantages[start]!.toFixed(3)
      return `[${start}, ${end}) ${advantage} × ${value.length}`
    })
    console.log(
      `${row.trajectory.id}  ${trained} of ${row.ids.length} tokens trained: ${runs.join('  ')}`,
    )
  }
  const prompt = tree.nodes.reduce((sum, { segment }) => sum + segment.ids.length, 0)
  console.log(`\n${prompt} tokens stored for ${members.length} endings`)
}
