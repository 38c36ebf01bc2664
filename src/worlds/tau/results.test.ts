import { dumps } from '@espalier/text/python'
import { describe, expect, it } from 'vitest'
import { formatMetrics, measure } from './metrics.ts'
import { toInfo } from './results.ts'

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

describe('accounts of attempts', () => {
  const reward = {
    reward: 1,
    info: { r_outputs: 1, outputs: new Map([['1', true]]) },
    actions: [],
  } as const
  const info = toInfo({ task, source: 'user', userCost: 0.002, reward })

  it('have every number in the form of the original', () => {
    expect(dumps(info)).toBe(
      '{"task": {"user_id": "u", "actions": [], "instruction": "\\u00e9", "outputs": ["1"]}, "source": "user", "user_cost": 0.002, "reward_info": {"reward": 1.0, "info": {"r_outputs": 1.0, "outputs": {"1": true}}, "actions": []}}',
    )
  })
})
