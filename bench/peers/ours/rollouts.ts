// Rollouts through the public `roll()` with a run folder, as `espalier roll` does them.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { environment, openPolicy, openRenderer, roll, tool } from '../../../dist/index.js'
import { cpuSeconds, printFigures, readWork } from './side.ts'

interface Work {
  readonly url: string
  /** The policy's address, in which URL stands for the server's. */
  readonly policy: string
  readonly rollouts: number
  readonly concurrency: number
  readonly turns: number
  readonly question: string
  readonly model: string
}

const lookUp = environment({
  name: 'look-up',
  task: z.object({ question: z.string() }),
  open: ({ data }) => ({
    opening: [{ role: 'user', content: data.question }],
    tools: {
      look_up: tool({
        description: 'Looks a key up.',
        inputSchema: z.object({ key: z.string() }),
        execute: ({ key }) => `The value of ${key} is 42, as the table of last week says.`,
      }),
    },
  }),
  reward: { done: () => 1 },
})

const work = await readWork<Work>()
const model = await openRenderer(work.model)
await using policy = await openPolicy(work.policy.replace('URL', work.url))

async function rollAll(rollouts: number): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-peers-'))
  const tasks = Array.from({ length: rollouts }, (_, id) => ({ id, question: work.question }))
  const limits = { turns: work.turns }
  let most = 0
  let taken = 0
  try {
    const out = join(folder, 'run')
    for await (const { members, unscored } of roll(lookUp, tasks, {
      policy,
      model,
      group: 1,
      concurrency: work.concurrency,
      limits,
      out,
    })) {
      if (unscored[0]) throw new Error(JSON.stringify(unscored[0].outcome))
      for (const { trajectory } of members) taken += trajectory.turns.length
      most = Math.max(most, process.memoryUsage.rss())
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  if (taken !== rollouts * work.turns) throw new Error(`${taken} turns came out`)
  return most
}

await rollAll(Math.min(work.rollouts, 128))
globalThis.gc?.()
const before = process.memoryUsage.rss()
const cpu = cpuSeconds()
const start = performance.now()
const most = await rollAll(work.rollouts)
const seconds = (performance.now() - start) / 1000
const turns = work.rollouts * work.turns
printFigures({
  turnsPerSecond: turns / seconds,
  cpuMicrosecondsPerTurn: ((cpuSeconds() - cpu) / turns) * 1e6,
  kilobytesPerRollout: Math.max(0, most - before) / 1024 / work.concurrency,
})
