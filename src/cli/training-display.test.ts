import { expect, it } from 'vitest'
import type { StepRecord } from '../learn/learn/steps/step-record.ts'
import { makeTrainingDisplay } from './training-display.ts'

const record = {
  success: 0.5,
  reward: 0.5,
  sampledTokens: 10,
  staleness: { mean: 0, most: 0 },
  seconds: { roll: 1, learn: 4 },
  metrics: {},
}

/** What is told of a run of `steps` steps that take so many seconds each. */
function told(steps: number, seconds: number, isLive = true, more: object = {}): string {
  const lines: string[] = []
  let clock = 0
  const terminal = { tell: (line: string) => lines.push(line), status: () => {}, isLive }
  const display = makeTrainingDisplay(terminal, steps, () => clock * 1000)
  for (let step = 1; step <= 3; step++) {
    clock += seconds
    display.onStep({ step, ...record, ...more } as unknown as StepRecord)
  }
  return lines.join('\n')
}

it('a long run says once how long it will go on, and how to limit it', () => {
  expect(told(60, 12)).toMatch(/^about 11 min 36 s more for 58 steps at this pace. --steps N /)
  expect(told(60, 12).split('\n')).toHaveLength(1)
  expect(told(60, 1)).toBe('')
})

it('a log has a line every ten steps, and at least one a minute', () => {
  expect(told(60, 1, false)).toBe('')
  expect(told(60, 31, false)).toMatch(/^step {2}2\/60 /m)
})

it('a line tells what was measured and nothing else; what is drawn ahead takes the time of learning too', () => {
  expect(told(3, 1)).toMatch(/^step 3\/3 {2}success 0.50 {2}reward 0.50 {2}10 tok\/s/)
  const ahead = { staleness: { mean: 1, most: 1 }, metrics: { entropy: 2, kl: 0.01 } }
  expect(told(3, 1, true, ahead)).toContain('entropy 2.000  kl 1.0e-2  2 tok/s')
})
