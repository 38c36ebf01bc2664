// Runs the demo for several seeds, its controls and the shortcuts, and prints a table:
// `npx tsx scripts/demo-seeds.ts [SEEDS] [--controls] [--oracle C] [--steps N]`, SEEDS as `1-5` or `1,2,3`.
import '../src/offers.ts'
import { parseArgs } from 'node:util'
import { makeLanes } from '../src/base/core/lane.ts'
import { desk } from '../src/engine/environments/desk/desk.ts'
import { scorePlay } from '../src/engine/environments/play.ts'
import { type DemoOptions, demoDefaults, runDemo } from '../src/learn/learn/demo.ts'
import { shortcuts } from '../test/desk-players.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    controls: { type: 'boolean' },
    oracle: { type: 'string' },
    steps: { type: 'string' },
  },
})

function readSeeds(text: string): readonly number[] {
  const [from, to] = text.split('-').map(Number)
  if (to === undefined) return text.split(',').map(Number)
  return Array.from({ length: to - from! + 1 }, (_, index) => from! + index)
}

/** One demo as a row of a table. */
async function row(label: string, options: DemoOptions): Promise<void> {
  const cpu = process.cpuUsage()
  const demo = await runDemo(options)
  const { user, system } = process.cpuUsage(cpu)
  const range = ({ low, high }: { low: number; high: number }) =>
    `${low.toFixed(3)}–${high.toFixed(3)}`
  console.log(
    `| ${label} | ${demo.successBefore.toFixed(3)} | ${range(demo.intervalBefore)} | ${demo.successAfter.toFixed(3)}` +
      ` | ${range(demo.intervalAfter)} | ${demo.seconds.toFixed(0)} | ${((user + system) / 1e6).toFixed(0)} | ${demo.sampledTokens} |`,
  )
}

/** Prints what each shortcut earns, and the most that fixed answers can: the best one for each kind of request. */
async function printShortcuts(): Promise<void> {
  const environment = desk()
  const { signal } = new AbortController()
  const lanes = makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
  const { heldOut: count, seed } = demoDefaults
  const tasks = environment.makeTasks!({ count, seed, split: 'held-out' })
  const best = new Map<string, number>()
  for (const [name, player] of Object.entries(shortcuts)) {
    const solved = new Map<string, number>()
    for (const task of tasks) {
      const options = { player, turns: 10, seed, signal, lanes }
      const { total } = await scorePlay(environment, task, options)
      const { kind } = task.data.requests[0]!
      solved.set(kind, (solved.get(kind) ?? 0) + total)
    }
    console.log(`| ${name} | ${(sumOf(solved) / count).toFixed(3)} |`)
    for (const [kind, total] of solved) best.set(kind, Math.max(best.get(kind) ?? 0, total))
  }
  console.log(
    `| the best of these for each kind of request | ${(sumOf(best) / count).toFixed(3)} |`,
  )
}

function sumOf(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, each) => sum + each, 0)
}

const more = {
  ...(values.steps !== undefined && { steps: Number(values.steps) }),
  ...(values.oracle !== undefined && { oracleBonus: Number(values.oracle) }),
}
console.log('| seed | before | 95 % | after | 95 % | seconds | CPU seconds | sampled tokens |')
console.log('|---|---|---|---|---|---|---|---|')
for (const seed of readSeeds(positionals[0] ?? '1-5')) await row(String(seed), { seed, ...more })
if (values.controls) {
  await row('learning rate 0', { learningRate: 0, ...more })
  for (const control of ['shuffled', 'noise'] as const) await row(control, { control, ...more })
  console.log('\n| shortcut | success |\n|---|---|')
  await printShortcuts()
}
