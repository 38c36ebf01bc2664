import { describe, expect, it } from 'vitest'
import type { Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeTaskSampler, type TaskSampler } from './sample-tasks.ts'

const tasks: readonly Task<number>[] = Array.from({ length: 40 }, (_, index) => ({
  id: `${index}` as TaskId,
  data: index,
}))

/** Tasks below 10 never succeed, those from 30 on always, the others half of the time. */
const successOf = (task: number): number => (task < 10 ? 0 : task >= 30 ? 1 : 0.5)

/** Draws steps of 8 tasks and tells how they went. */
function draws(sampler: TaskSampler<number>, from: number, to: number): number[][] {
  return Array.from({ length: to - from }, (_, index) => {
    const taken = new Set<TaskId>()
    const step = Array.from({ length: 8 }, (_, place) => {
      const task = sampler.at((from + index) * 8 + place, taken)
      taken.add(task.id)
      return task
    })
    sampler.learn(step.map(({ id, data }) => ({ task: id, attempts: 8, success: successOf(data) })))
    return step.map(({ data }) => data)
  })
}

const share = (steps: readonly (readonly number[])[], is: (task: number) => boolean): number =>
  steps.flat().filter(is).length / steps.flat().length

describe.each(['uniform', 'band', 'thompson', 'progress'])('%s', method => {
  it('is the same for the same seed, and goes on from its memory', () => {
    const whole = draws(makeTaskSampler(method, tasks, 3), 0, 12)
    const first = makeTaskSampler(method, tasks, 3)
    draws(first, 0, 6)
    const second = makeTaskSampler(method, tasks, 3)
    second.restore(JSON.parse(JSON.stringify(first.memory())))
    expect(draws(second, 6, 12)).toEqual(whole.slice(6))
    expect(draws(makeTaskSampler(method, tasks, 4), 0, 12)).not.toEqual(whole)
  })

  it('has no task twice in a step, and counts what it drew', () => {
    const sampler = makeTaskSampler(method, tasks, 5)
    for (const step of draws(sampler, 0, 20)) expect(new Set(step).size).toBe(8)
    const { draws: drawn, tried, success } = sampler.report()
    expect(drawn).toBe(160)
    expect(success.never + success.sometimes + success.always).toBe(tried)
  })
})

describe('by what was learned', () => {
  const isMiddle = (task: number): boolean => successOf(task) === 0.5

  it.each(['band', 'thompson', 'progress'])('%s starves no task', method => {
    const drawn = new Map<number, number>()
    for (const task of draws(makeTaskSampler(method, tasks, 2), 0, 120)
      .slice(40)
      .flat()) {
      drawn.set(task, (drawn.get(task) ?? 0) + 1)
    }
    // 640 draws, a fifth or a quarter of them to explore, over the 40 tasks.
    expect(Math.min(...tasks.map(({ data }) => drawn.get(data) ?? 0))).toBeGreaterThanOrEqual(2)
  })

  it('band and thompson draw what succeeds sometimes, uniform what there is', () => {
    const late = (method: string) => draws(makeTaskSampler(method, tasks, 1), 0, 60).slice(20)
    expect(share(late('uniform'), isMiddle)).toBeCloseTo(0.5, 1)
    expect(share(late('band'), isMiddle)).toBeGreaterThan(0.8)
    expect(share(late('thompson'), isMiddle)).toBeGreaterThan(0.8)
  })

  it('progress draws what changes', () => {
    const sampler = makeTaskSampler('progress:explore=0', tasks, 1)
    const tell = (task: number, success: number) =>
      sampler.learn([{ task: `${task}` as TaskId, attempts: 8, success }])
    for (const task of [1, 2, 3]) tell(task, 0)
    tell(2, 1)
    expect(sampler.at(0).data).toBe(2)
  })

  it('a wrong name or option says what was possible', () => {
    expect(() => makeTaskSampler('thomson', tasks, 0)).toThrow(/thompson/)
    expect(() => makeTaskSampler('band:lo=1', tasks, 0)).toThrow(/Known: low, high, explore/)
    expect(() => makeTaskSampler('band:low=0.9,high=0.1', tasks, 0)).toThrow('above high')
  })
})
