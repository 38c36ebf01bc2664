import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { IdleWatch } from './idle-watch.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('something that is closed when nobody uses it', () => {
  it('is closed a while after its last use', () => {
    const end = vi.fn()
    const watch = new IdleWatch(900, end)
    vi.advanceTimersByTime(899_000)
    watch.touch()
    vi.advanceTimersByTime(899_000)
    expect(end).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1000)
    expect(end).toHaveBeenCalledOnce()
  })

  it('is not closed at once where the while is longer than a timer takes', () => {
    const end = vi.fn()
    new IdleWatch(30 * 86_400, end)
    vi.advanceTimersByTime(29 * 86_400_000)
    expect(end).not.toHaveBeenCalled()
    vi.advanceTimersByTime(2 * 86_400_000)
    expect(end).toHaveBeenCalledOnce()
  })

  it('stays while something is done with it, and for the same while after that', async () => {
    const end = vi.fn()
    const watch = new IdleWatch(900, end)
    const finish: (() => void)[] = []
    const uses = [1, 2].map(() => watch.during(() => new Promise<void>(done => finish.push(done))))
    vi.advanceTimersByTime(5_000_000)
    finish[0]!()
    await uses[0]
    watch.touch()
    vi.advanceTimersByTime(5_000_000)
    finish[1]!()
    await uses[1]
    vi.advanceTimersByTime(899_000)
    expect(end).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1000)
    expect(end).toHaveBeenCalledOnce()
  })

  it('is left alone once it is closed', async () => {
    const end = vi.fn()
    const watch = new IdleWatch(900, end)
    await watch.during(async () => watch.stop())
    vi.advanceTimersByTime(5_000_000)
    expect(end).not.toHaveBeenCalled()
  })
})
