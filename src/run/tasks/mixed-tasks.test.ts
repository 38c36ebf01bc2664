import { describe, expect, it } from 'vitest'
import type { Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { byTurns, environmentsOf, makeSampler } from './mixed-tasks.ts'

const of = (environment: string, count: number): readonly Task[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `${environment}/${index}` as TaskId,
    data: { environment, data: index },
  }))

const mixed = [
  { name: 'a', weight: 2 },
  { name: 'b', weight: 1 },
]
const tasks = [...of('a', 4), ...of('b', 40)]

describe('tasks of several environments', () => {
  it('come by turns as their weights say, however many there are of each', () => {
    const sampler = makeSampler('uniform', { tasks, mixed }, 1)
    const drawn = Array.from({ length: 30 }, (_, place) => sampler.at(place).id)
    const whose = drawn.map(id => id[0])
    for (let at = 0; at < 30; at += 3) {
      expect(whose.slice(at, at + 3).sort()).toEqual(['a', 'a', 'b'])
    }
    // Each has passes of its own.
    const ofA = drawn.filter(id => id.startsWith('a'))
    for (let at = 0; at < 20; at += 4) expect(new Set(ofA.slice(at, at + 4)).size).toBe(4)
    expect(new Set(drawn.filter(id => id.startsWith('b'))).size).toBe(10)
    expect(makeSampler('uniform', { tasks, mixed }, 1).at(17)).toEqual(sampler.at(17))
  })

  it('are remembered each by its own sampler', () => {
    const first = makeSampler('band', { tasks, mixed }, 1)
    first.learn([
      { task: 'a/1' as TaskId, attempts: 4, success: 0.5 },
      { task: 'b/7' as TaskId, attempts: 4, success: 0.5 },
    ])
    const second = makeSampler('band', { tasks, mixed }, 1)
    second.restore(JSON.parse(JSON.stringify(first.memory())))
    const draw = (sampler: typeof first) =>
      Array.from({ length: 24 }, (_, place) => sampler.at(place).id)
    expect(draw(second)).toEqual(draw(first))
    expect(draw(first).filter(id => id === 'b/7').length).toBeGreaterThan(3)
    expect(second.report()).toMatchObject({ tasks: 44, tried: 2, draws: 2 })
  })

  it('are held out by turns, as many of each', () => {
    const first = byTurns(tasks).slice(0, 8)
    expect(
      first
        .map(({ id }) => id[0])
        .sort()
        .join(''),
    ).toBe('aaaabbbb')
    expect(byTurns(tasks)).toHaveLength(44)
  })

  it('are known by their ids, and are missed where there are none', () => {
    expect(environmentsOf({ mixed }, tasks)?.('b/7' as TaskId)).toBe('b')
    expect(environmentsOf({}, tasks)).toBeUndefined()
    expect(() => makeSampler('uniform', { tasks: of('a', 2), mixed }, 1)).toThrow('no tasks of b')
  })
})
