// Teaches and trains the agent of README for several seeds and prints what it earns on held-out tasks before and after:
// `npm run build && npx tsx scripts/agent-seeds.ts [SEEDS] [--steps N] [--json]`, SEEDS as `1,2,3`. Exits with 1 where a seed
// does not begin below 0.5 and end with 0.9.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    steps: { type: 'string', default: '100' },
    json: { type: 'boolean', default: false },
  },
})
const program = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const agent = fileURLToPath(new URL('../examples/agent/agent.ts', import.meta.url))

interface Learned {
  readonly seed: number
  readonly successBefore: number
  readonly successAfter: number
}

/** The last line that a command prints, as JSON. */
function espalier(...words: readonly string[]): unknown {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words, '--json'], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (status !== 0) throw new Error(`espalier ${words[0]} ended with ${status}: ${stderr}`)
  return JSON.parse(stdout.trim().split('\n').at(-1)!)
}

function learn(seed: number, folder: string): Learned {
  const [model, run] = [join(folder, `model-${seed}`), join(folder, `run-${seed}`)]
  const common = ['--agent', `${agent}#run`, '--seed', String(seed)]
  const taught = ['--demonstrations', `${agent}#show`, '--tasks', '48', '--split', 'shown']
  espalier('teach', ...common, ...taught, '--out', model)
  const tasks = ['--tasks', '192', '--held-out', '48']
  const learning = ['--steps', values.steps]
  const limits = ['--max-turns', '4', '--max-new-tokens', '16']
  const policy = ['--policy', `embedded:${model}`, '--out', run]
  const last = espalier('train', ...common, ...policy, ...tasks, ...learning, ...limits)
  const { successBefore, successAfter } = last as Learned
  return { seed, successBefore, successAfter }
}

const folder = mkdtempSync(join(tmpdir(), 'espalier-seeds-'))
try {
  const seeds = (positionals[0] ?? '1,2,3').split(',').map(Number)
  for (const seed of seeds) {
    const learned = learn(seed, folder)
    const { successBefore: before, successAfter: after } = learned
    if (before >= 0.5 || after < 0.9) process.exitCode = 1
    console.log(
      values.json
        ? JSON.stringify(learned)
        : `seed ${seed}: ${before.toFixed(2)} to ${after.toFixed(2)}`,
    )
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
