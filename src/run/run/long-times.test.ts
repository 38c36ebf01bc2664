import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { attemptAt } from '../../../test/rolling.ts'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { HttpExchange } from '../../engine/policies/transport/exchange.ts'
import { defaultLimits } from '../../engine/rollout/attempt.ts'
import { withTime } from '../../engine/rollout/chain.ts'
import { openBudget } from './budget.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const days = 86_400
const seconds = 30 * days

/** What starts a timer of so many seconds and gives whether it fired. */
const timers: Readonly<Record<string, () => () => boolean>> = {
  'the budget of a run': () => {
    const { signal } = openBudget({ seconds })
    return () => signal.aborted
  },
  'the seconds of an attempt': () => {
    const world = singleTurn()
    const attempt = attemptAt(world, { prompt: 'Hello', answer: 'x' })
    const timed = withTime(attempt, { limits: { ...defaultLimits, seconds } })
    return () => timed.attempt.signal.aborted
  },
  'the deadline of a request': () => {
    const exchange = new HttpExchange({ where: 'POST /generate', deadlineSeconds: seconds })
    let isLate = false
    exchange.answer.catch(() => {
      isLate = true
    })
    return () => isLate
  },
}

describe('a time of thirty days, which is more than a timer takes', () => {
  it.each(Object.entries(timers))('%s waits for it', async (_, start) => {
    const hasFired = start()
    await vi.advanceTimersByTimeAsync(29 * days * 1000)
    expect(hasFired()).toBe(false)
    await vi.advanceTimersByTimeAsync(2 * days * 1000)
    expect(hasFired()).toBe(true)
  })
})
