import { expect, it } from 'vitest'
import { z } from 'zod'
import { environment } from '../../engine/environments/environment.ts'
import { roll } from './roll.ts'

it('an attempt that outgrows the context of a model inside is cut there and scored, not failed', async () => {
  const long = environment({
    name: 'long',
    task: z.object({}),
    open: () => ({ opening: [{ role: 'user', content: 'pear '.repeat(2000) }] }),
    reward: { none: () => 0 },
  })
  const groups = []
  for await (const group of roll(long, [{}], { policy: 'embedded', group: 1 })) groups.push(group)
  expect(groups[0]?.members).toMatchObject([
    { trajectory: { outcome: { kind: 'truncated', limit: 'context' } }, reward: { total: 0 } },
  ])
})
