import { describe, expect, it } from 'vitest'
import { dumps } from '../../python/json.ts'
import { formatMetrics, measure } from './metrics.ts'
import { readResults, resultsFileName, toInfo, writeResults } from './results.ts'

const task = { userId: 'u', instruction: 'é', actions: [], outputs: ['1'] }

describe('metrics', () => {
  it('print every digit as the original does', () => {
    const rewards = [1, 0, 1, 0.9999995, 0, 0, 1, 1, 0.5]
    const attempts = rewards.map((reward, index) => ({
      taskId: index % 3,
      trial: Math.floor(index / 3),
      reward,
    }))
    expect(formatMetrics(measure(attempts))).toBe(
      '🏆 Average reward: 0.6111110555555554\n📈 Pass^k\n  k=1: 0.5555555555555555\n  k=2: 0.3333333333333333\n  k=3: 0.3333333333333333\n',
    )
  })

  it('need an attempt', () => {
    expect(() => measure([])).toThrow('no attempts')
  })
})

describe('result files', () => {
  const reward = {
    reward: 1,
    info: { r_outputs: 1, outputs: new Map([['1', true]]) },
    actions: [],
  } as const
  const info = toInfo({ task, source: 'user', userCost: 0.002, reward })
  const message = new Map([
    ['role', 'user'],
    ['content', 'hi'],
  ])
  const results = [{ taskId: 3, trial: 0, reward: 1, info, messages: [message] }]

  it('are written in the form of the original', () => {
    const text = writeResults(results)
    expect(text).toContain(
      '[\n  {\n    "task_id": 3,\n    "reward": 1.0,\n    "info": {\n      "task": {\n        "user_id"',
    )
    expect(dumps(info)).toBe(
      '{"task": {"user_id": "u", "actions": [], "instruction": "\\u00e9", "outputs": ["1"]}, "source": "user", "user_cost": 0.002, "reward_info": {"reward": 1.0, "info": {"r_outputs": 1.0, "outputs": {"1": true}}, "actions": []}}',
    )
  })

  it('come back as they were written', () => {
    const text = writeResults(results)
    expect(writeResults(readResults(text))).toBe(text)
    expect(readResults(text)[0]).toMatchObject({ taskId: 3, trial: 0, reward: 1 })
  })

  it.each([
    ['{}', 'a list of attempts'],
    ['[1]', 'Entry 0 of the result file is not an object'],
    ['[{"task_id": 1, "trial": 0, "reward": "1", "info": {}, "traj": []}]', '"reward"'],
    ['[{"task_id": 1, "trial": 0, "reward": 1, "info": {}}]', '"traj"'],
  ])('%s is refused', (text, problem) => {
    expect(() => readResults(text)).toThrow(problem)
  })

  it('are named after the run', () => {
    const name = resultsFileName({
      agent: 'tool-calling',
      model: 'org/model',
      temperature: 0,
      start: 0,
      end: -1,
      userModel: 'a/b',
      userStrategy: 'llm',
      time: '0102030405',
    })
    expect(name).toBe('tool-calling-model-0.0_range_0--1_user-a/b-llm_0102030405.json')
  })
})
