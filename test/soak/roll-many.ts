// Rolls many short attempts into a run folder and prints its memory now and then, as JSON lines.
// node --expose-gc --import tsx test/soak/roll-many.ts ROLLOUTS FOLDER
import { singleTurn } from '../../src/engine/environments/built-in/single-turn.ts'
import { makeEstimate } from '../../src/engine/weigh/estimate.ts'
import { rollIntoRun } from '../../src/run/run/open-run-folder.ts'
import { openCountingPolicy } from '../counting-policy.ts'
import { openByteRenderer } from '../rolling.ts'

const [rollouts = '1000', folder = 'runs/soak'] = process.argv.slice(2)
const group = 8
const count = Math.ceil(Number(rollouts) / group)
const renderer = await openByteRenderer()
const { policy } = openCountingPolicy({
  length: ({ seed }) => 4 + (seed % 12),
  end: renderer.stopIds[0]!,
})

function* tasks() {
  for (let id = 0; id < count; id++) yield { id, prompt: `task ${id}`, answer: 'x' }
}

const every = Math.ceil(count / 20)
let done = 0
const groups = rollIntoRun(
  tasks(),
  {
    environment: singleTurn(),
    reward: { one: () => 1 },
    policy,
    renderer,
    estimate: makeEstimate('grpo'),
    group,
    listen: () => {},
  },
  { out: folder, kind: 'roll', config: {} },
)
for await (const _ of groups) {
  done++
  if (done % every !== 0) continue
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  console.log(JSON.stringify({ rollouts: done * group, megabytes: (heapUsed + external) / 1e6 }))
}
