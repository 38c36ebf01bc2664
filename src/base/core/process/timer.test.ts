import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { delayOf, startTimer } from './timer.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const day = 86_400_000
const longestDelay = delayOf(Number.POSITIVE_INFINITY)

describe('startTimer', () => {
  it.each([1, 1000, longestDelay, longestDelay + 1, 30 * day, 365 * day])(
    'waits %d milliseconds, no less and no more',
    milliseconds => {
      const act = vi.fn()
      startTimer(act, milliseconds)
      vi.advanceTimersByTime(milliseconds - 1)
      expect(act).toHaveBeenCalledTimes(0)
      // Every part is rounded up to a millisecond.
      vi.advanceTimersByTime(20)
      expect(act).toHaveBeenCalledOnce()
      expect(vi.getTimerCount()).toBe(0)
    },
  )

  it('never fires for Infinity, and is called off like any timer', () => {
    const act = vi.fn()
    const timer = startTimer(act, Number.POSITIVE_INFINITY)
    vi.advanceTimersByTime(365 * day)
    clearTimeout(timer)
    expect(vi.getTimerCount()).toBe(0)
    expect(act).not.toHaveBeenCalled()
  })
})
