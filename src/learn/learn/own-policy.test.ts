import { expect, it } from 'vitest'
import { roll } from '../../run/run/roll.ts'
import { scripted } from '../../testing.ts'
import { train } from './train.ts'

/** A policy of one's own, which is called as if it ran inside and says which model it serves. */
async function ownPolicy() {
  return { ...(await scripted(['2'])), name: 'embedded-qwen', model: 'Qwen3-0.6B' }
}

it('a policy of your own rolls under any name', async () => {
  const policy = await ownPolicy()
  const turns: number[] = []
  for await (const { members } of roll('calculator', 1, { policy, group: 1 }))
    turns.push(members[0]!.trajectory.turns.length)
  expect(turns).toEqual([1])
})

it('a policy of your own is refused by the embedded trainer, by its name and with what can train it', async () => {
  const training = train('calculator', 8, { policy: await ownPolicy(), group: 2, steps: 1 })
  await expect(training).rejects.toThrow(
    '--policy embedded-qwen: the embedded trainer cannot change its weights',
  )
})
