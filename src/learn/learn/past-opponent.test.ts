import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { z } from 'zod'
import { agent } from '../../engine/capture/agent.ts'
import { openRunReader } from '../../run/store/store.ts'
import { train } from './train.ts'

const folder = mkdtempSync(join(tmpdir(), 'past-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Whoever says more wins; what one gains the other loses. */
const duel = agent({
  name: 'duel',
  seats: ['left', 'right'],
  task: z.object({ number: z.int() }),
  async run({ task: { number }, seats, signal }) {
    const opening = [{ role: 'user', content: `speak ${number}` }] as const
    const left = await seats.left.speaker.say(opening, { signal })
    const right = await seats.right.speaker.say(opening, { signal })
    const length = (said: unknown): number => String(said ?? '').length
    return { ahead: length(left.message.content) - length(right.message.content) }
  },
  reward: {
    ahead: ({ seat, report }) => Math.sign(report.ahead) * (seat === 'left' ? 1 : -1),
  },
})

it('a policy trains against its own past: newer checkpoints join the pool, and only its seat learns', async () => {
  const out = join(folder, 'run')
  const tasks = Array.from({ length: 12 }, (_, number) => ({ number }))
  await train(duel, tasks, {
    policy: 'embedded',
    seats: { right: 'past:last=2' },
    steps: 3,
    tasksPerStep: 3,
    group: 4,
    heldOut: 2,
    checkpointEvery: 1,
    limits: { turns: 2, newTokens: 6 },
    out,
  })
  await using reader = await openRunReader(out)
  const met = new Set<string>()
  for await (const { group } of reader.groups()) {
    for (const { trajectory, dropped } of group.members) {
      expect(dropped?.filter === 'seat', group.id).toBe(group.seat === 'right')
      if (group.seat !== 'right') continue
      for (const each of trajectory.volatile.servers) met.add(basename(each))
    }
  }
  // The first step meets where it began; by the last one a later self has come.
  expect(met.has('000000')).toBe(true)
  expect(met.size).toBeGreaterThan(1)
}, 120_000)
