import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { call, openByteRenderer, script } from '../../../test/rolling.ts'
import type { Group } from '../../base/core/group.ts'
import { environment } from '../../engine/environments/environment.ts'
import { roll } from '../run/roll.ts'
import { makeCondenseReport } from './condense-report.ts'
import { countGroup } from './group-figures.ts'

const renderer = await openByteRenderer()
const passage = (name: string): string =>
  `The town of ${name} lies on the river Senn and has a market on every second Monday. Its mayor is ` +
  `Ida of ${name}, who was elected in 1951 by a small majority. It is known for its seven bridges and for a clock tower.`

const towns = environment({
  name: 'towns',
  task: z.object({ town: z.string() }),
  open: ({ data }) => ({
    opening: [
      {
        role: 'user',
        content: `Question: Who is the mayor?\n\n${passage(data.town)}\n\n${passage('Elsewhere')}`,
      },
    ],
    tools: {},
  }),
  reward: { right: ({ answer, task }) => Number(answer === `Ida of ${task.data.town}`) },
})

async function rollTowns(condense?: string): Promise<readonly Group[]> {
  const recall = (block: number): string => call('recall', { block: block })
  const policy = script(renderer, [
    { text: recall(1), task: 'a' },
    { text: 'Ida of Ardle<|im_end|>', task: 'a' },
    { text: 'Nobody<|im_end|>', task: 'b' },
  ])
  const tasks = [
    { id: 'a', town: 'Ardle' },
    { id: 'b', town: 'Brill' },
  ]
  const groups: Group[] = []
  const options = { policy, model: renderer, group: 1, ...(condense && { condense }) }
  for await (const group of roll(towns, tasks, options)) groups.push(group)
  return groups
}

describe('openCondenseReport', () => {
  it('tells the ratio, recalls per trajectory, what they cost, and the reward with and without', async () => {
    const report = makeCondenseReport()
    const groups = await rollTowns('keyword:boundary=blank-line')
    for (const group of groups) report.add(countGroup(group))
    const told = report.report()!
    expect(told).toMatchObject({
      trajectories: 2,
      share: 1,
      condensings: 2,
      failed: 0,
      blocks: 4,
      failures: 0,
      recalls: { count: 1, perTrajectory: 0.5, characters: passage('Ardle').length },
      reward: { withRecall: 1, withoutRecall: 0 },
    })
    expect(told.tokens.ratio).toBeGreaterThan(1.1)
    expect(told.tokens.before / told.tokens.after).toBe(told.tokens.ratio)
    expect(told.recalls.sampled).toBeGreaterThan(40)
    expect(told.recalls.observed).toBeGreaterThan(passage('Ardle').length)
  })

  it('has nothing to tell of a run that condenses nothing', async () => {
    const report = makeCondenseReport()
    for (const group of await rollTowns()) report.add(countGroup(group))
    expect(report.report()).toBeUndefined()
  })
})
