// The rollouts that several programs of this folder make: a question, and a tool that answers at once.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { environment, type Policy, roll, tool } from '../../../dist/index.js'
import type { ModelRenderer } from '../../../dist/tokens.js'

/** What a program of rollouts is given. */
export interface RolloutWork {
  readonly url: string
  /** The policy's address, in which URL stands for the server's. */
  readonly policy: string
  readonly rollouts: number
  readonly concurrency: number
  readonly turns: number
  readonly question: string
  readonly model: string
}

/** Made once, as every peer makes its own. */
const tools = {
  look_up: tool({
    description: 'Looks a key up.',
    inputSchema: z.object({ key: z.string() }),
    execute: ({ key }) => `The value of ${key} is 42, as the table of last week says.`,
  }),
}

const lookUp = environment({
  name: 'look-up',
  task: z.object({ question: z.string() }),
  open: ({ data }) => ({ opening: [{ role: 'user', content: data.question }], tools }),
  reward: { done: () => 1 },
})

/** Rolls into a run folder that is deleted again. */
export async function rollAll({
  policy,
  model,
  work,
}: {
  readonly policy: Policy
  readonly model: ModelRenderer
  readonly work: RolloutWork
}): Promise<void> {
  const { rollouts, concurrency } = work
  const folder = await mkdtemp(join(tmpdir(), 'espalier-peers-'))
  const tasks = Array.from({ length: rollouts }, (_, id) => ({ id, question: work.question }))
  const limits = { turns: work.turns }
  let taken = 0
  try {
    const out = join(folder, 'run')
    for await (const { members, unscored } of roll(lookUp, tasks, {
      policy,
      model,
      group: 1,
      concurrency,
      limits,
      out,
    })) {
      if (unscored[0]) throw new Error(JSON.stringify(unscored[0].outcome))
      for (const { trajectory } of members) taken += trajectory.turns.length
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  if (taken !== rollouts * work.turns) throw new Error(`${taken} turns came out`)
}
