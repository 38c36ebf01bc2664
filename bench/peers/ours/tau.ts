// tau-bench's retail tools through `roll()`, with a policy that calls one tool in every turn.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPolicy, roll } from '../../../dist/index.js'
import { openRenderer } from '../../../dist/tokens.js'
import { measureRollouts, printFigures, readWork } from './side.ts'

const work = await readWork<{
  readonly url: string
  readonly model: string
  readonly tauBench?: string
  readonly rollouts: number
  readonly concurrency: number
  readonly turns: number
}>()
if (work.tauBench === undefined) {
  console.error('needs a checkout of tau-bench: --tau-bench DIR')
  process.exit(3)
}
const model = await openRenderer(work.model)
await using policy = await openPolicy(`sglang:${work.url}`)

async function rollAll(rollouts: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-peers-'))
  const { concurrency } = work
  const script = join(folder, 'user.txt')
  await writeFile(script, 'Hello, I want to exchange something.\nYes.\n')
  const environment = `tau:retail,root=${work.tauBench},split=test,user=scripted,script=${script}`
  const tasks = Array.from({ length: rollouts }, () => ({ split: 'test', index: 0 }))
  const limits = { turns: work.turns }
  try {
    const out = join(folder, 'run')
    const options = { policy, model, group: 1, concurrency, limits, out }
    for await (const { unscored } of roll(environment, tasks, options)) {
      if (unscored[0]) throw new Error(JSON.stringify(unscored[0].outcome))
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

printFigures(await measureRollouts(work, rollAll))
