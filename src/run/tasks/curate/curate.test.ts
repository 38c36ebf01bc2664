import { describe, expect, it } from 'vitest'
import type { Task } from '../../../base/core/environment.ts'
import type { TaskId } from '../../../base/core/ids.ts'
import { bandOf, dedupeTasks, partTasks } from './curate.ts'

const task = (id: string, prompt: string): Task => ({ id: id as TaskId, data: { prompt } })
const long = 'a clerk sells seven pears to a customer who pays with a note of ten and waits'

describe('a set of tasks', () => {
  it('is left without what repeats, by text and by n-grams, first against what is held out', () => {
    const tasks = [
      task('a', long),
      task('b', 'What is 2 + 3?'),
      task('c', 'what is  2 +3'),
      task('d', `${long} for the change`),
      task('e', 'What is 2 - 3?'),
      task('f', 'which river runs through the town where the oldest bridge of the country stands'),
    ]
    const held = [
      task(
        'h',
        'Say: which river runs through the town where the oldest bridge of the country stands',
      ),
    ]
    const { kept, leftOut } = dedupeTasks(tasks, held)
    expect(kept.map(({ id }) => id)).toEqual(['a', 'b', 'e'])
    expect(leftOut).toMatchObject([
      { id: 'c', because: 'repeated', of: 'b', kind: 'same-text' },
      { id: 'd', because: 'repeated', of: 'a', kind: 'n-grams' },
      { id: 'f', because: 'held-out', of: 'h', kind: 'n-grams', share: 1 },
    ])
    const strict = dedupeTasks([task('a', long), task('b', `the ${long.slice(4)} too`)], [], {
      overlap: 1,
    })
    expect(strict.kept).toHaveLength(2)
    expect(() => dedupeTasks(tasks, held, { overlap: 0 })).toThrow(/above 0/)
  })

  it('leaks by a held-out task that is only a part of another, and in scripts without spaces', () => {
    const whole = task(
      'w',
      `${'Read what the ledger of the harbour says about it. '.repeat(9)}${long}`,
    )
    expect(dedupeTasks([whole], [task('h', long)]).leftOut).toMatchObject([
      { id: 'w', because: 'held-out', of: 'h', kind: 'n-grams', share: 1 },
    ])
    const asked = '请问这座桥是哪一年建成的呢'
    const again = '请问：这座桥是哪一年建成的？谢谢'
    expect(dedupeTasks([task('again', again)], [task('asked', asked)]).kept).toEqual([])
  })

  it('may share an instruction: what most tasks have tells none of them apart', () => {
    const tasks = Array.from({ length: 20 }, (_, at) =>
      task(String(at), `${long}. Now say how the word number ${at} of the list is spelled.`),
    )
    expect(dedupeTasks(tasks, []).kept).toHaveLength(20)
  })

  it('keeps together what is like two tasks that are not alike', () => {
    const second = 'on the way home the same customer counts all his coins once more'
    const tasks = [task('1', long), task('2', second), task('3', `${long} and ${second}`)]
    const parts = partTasks(tasks, { train: 0.5, test: 0.5 }, { seed: 1 })
    expect(
      Object.values(parts)
        .map(part => part.length)
        .sort(),
    ).toEqual([0, 3])
  })

  it('is parted by shares, and what is alike stays together', () => {
    const tasks = Array.from({ length: 40 }, (_, at) =>
      task(String(at), `${long} number ${at % 10}`),
    )
    const parts = partTasks(tasks, { train: 0.5, test: 0.5 }, { seed: 1, overlap: 0.95 })
    expect([parts.train!.length, parts.test!.length]).toEqual([20, 20])
    const kinds = (name: string) => new Set(parts[name]!.map(({ id }) => Number(id) % 10))
    expect([...kinds('train')].filter(kind => kinds('test').has(kind))).toEqual([])
    const again = partTasks(tasks, { train: 0.5, test: 0.5 }, { seed: 1, overlap: 0.95 })
    expect(again).toEqual(parts)
  })

  it('has bands of difficulty', () => {
    expect([0, 0.25, 0.5, 0.75, 1].map(bandOf)).toEqual([
      'never',
      'seldom',
      'sometimes',
      'often',
      'always',
    ])
  })
})
