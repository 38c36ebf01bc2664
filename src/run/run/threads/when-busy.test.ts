import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { openWhenBusy } from './when-busy.ts'

/** Threads that only say what they were told. */
function openTold(told: string[]) {
  return {
    room: 3,
    ready: async () => {},
    watch: () => () => {},
    make: async () => ({ kind: 'poisoned', reason: 'in a thread' }) as const,
    taken: () => {},
    pause: async () => void told.push('pause'),
    resume: async (version?: number) => void told.push(`resume ${version}`),
    [Symbol.asyncDispose]: async () => void told.push('close'),
  }
}

describe('threads by default', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('are started when this one is busy all the time, with the weights of the moment', async () => {
    const told: string[] = []
    let share = 0.5
    const places = openWhenBusy({
      open: () => openTold(told),
      hint: undefined,
      tell: line => told.push(line),
      measure: () => ({ share, cores: 1 }),
    })
    places.watch(() => {})
    await vi.advanceTimersByTimeAsync(60_000)
    expect([places.isOpen, places.room]).toEqual([false, 0])
    await places.resume(7)
    share = 1
    await vi.advanceTimersByTimeAsync(1250)
    expect(places.isOpen).toBe(false)
    await vi.advanceTimersByTimeAsync(250)
    expect([places.isOpen, places.room]).toEqual([true, 3])
    await places[Symbol.asyncDispose]()
    expect(told).toEqual(['resume 7', 'close'])
  })

  it("are only spoken of where files of the user's own would be loaded once for each", async () => {
    const told: string[] = []
    const places = openWhenBusy({
      open: () => openTold(told),
      hint: '--threads 4',
      tell: line => told.push(line),
      measure: () => ({ share: 1, cores: 1 }),
    })
    places.watch(() => {})
    await vi.advanceTimersByTimeAsync(60_000)
    expect(places.isOpen).toBe(false)
    expect(told).toEqual(['--threads 4'])
  })

  it('are not started while the program uses the cores that they would need', async () => {
    let cores = 1.8
    const places = openWhenBusy({
      open: () => openTold([]),
      hint: undefined,
      tell: () => {},
      seconds: 6,
      mostCores: 1.5,
      measure: () => ({ share: 1, cores }),
    })
    places.watch(() => {})
    await vi.advanceTimersByTimeAsync(60_000)
    expect(places.isOpen).toBe(false)
    cores = 1.2
    await vi.advanceTimersByTimeAsync(5750)
    expect(places.isOpen).toBe(false)
    await vi.advanceTimersByTimeAsync(250)
    expect(places.isOpen).toBe(true)
    await places[Symbol.asyncDispose]()
  })
})
