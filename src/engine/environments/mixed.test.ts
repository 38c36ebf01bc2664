import { describe, expect, it } from 'vitest'
import type { RewardInput } from '../../base/core/reward.ts'
import { openEnvironmentNamed } from '../../run/settings/open-environment.ts'
import { calculator } from './built-in/calculator.ts'
import { desk } from './desk/desk.ts'
import { mixEnvironments, sharesOf } from './mixed.ts'

describe('several environments in one', () => {
  it('are opened by their names with weights, and make tasks in these shares', async () => {
    const mixed = await openEnvironmentNamed('desk:length=long,weight=2 + calculator')
    expect(mixed.mixed).toEqual([
      { name: 'desk', weight: 2 },
      { name: 'calculator', weight: 1 },
    ])
    const made = mixed.makeTasks!({ count: 10, seed: 1 })
    const whose = made.map(({ id }) => id.split('/')[0])
    expect(whose.filter(name => name === 'desk')).toHaveLength(7)
    expect(whose.filter(name => name === 'calculator')).toHaveLength(3)
    expect(sharesOf(10, [{ weight: 1 }, { weight: 1 }, { weight: 1 }])).toEqual([3, 4, 3])
  })

  it('the weight of one alone changes nothing, and a wrong one is refused', async () => {
    const one = await openEnvironmentNamed('calculator:weight=3')
    expect([one.name, one.mixed]).toEqual(['calculator', undefined])
    const wrong = openEnvironmentNamed('desk:weight=none + calculator')
    await expect(wrong).rejects.toThrow('weight=none is not a number above 0')
  })

  it('open worlds of their own, and read tasks that name them', async () => {
    const mixed = await openEnvironmentNamed('desk + calculator')
    const [task] = mixed.makeTasks!({ count: 2, seed: 1 })
    // What a run kept reads as it was.
    expect(mixed.readTask(JSON.parse(JSON.stringify(task!.data)))).toEqual(task!.data)
    expect(() => mixed.readTask({ question: '1 + 1' })).toThrow('desk, calculator')
    const { data } = calculator().makeTasks!({ count: 1, seed: 1 })[0]!
    const line = { id: 'mine', environment: 'calculator', ...(data as object) }
    expect(mixed.readTask(line)).toMatchObject({ environment: 'calculator' })
  })

  it('score their own tasks only', async () => {
    const scored = (name: string, score: number) => ({
      ...desk(),
      name,
      reward: { [name]: { weight: 2, score: () => score }, both: () => score },
    })
    const mixed = mixEnvironments([
      { name: 'a', weight: 1, environment: scored('a', 1) as never },
      { name: 'b', weight: 1, environment: scored('b', 3) as never },
    ])
    const input = { task: { id: 'x', data: { environment: 'b', data: null } } } as never
    const score = async (part: string): Promise<readonly number[]> => {
      const found = mixed.reward[part]
      if (typeof found !== 'object') throw new Error('no weight')
      const call = { signal: new AbortController().signal }
      return [found.weight, await found.score(input as RewardInput<never>, call)]
    }
    expect(await score('a')).toEqual([2, 0])
    expect(await score('b')).toEqual([2, 3])
    expect(await score('both')).toEqual([1, 3])
  })
})
