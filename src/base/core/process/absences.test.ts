import { describe, expect, it } from 'vitest'
import { fakeClock } from '../../../../test/fake-clock.ts'
import { Absences } from './absences.ts'
import type { Clock } from './clock.ts'

function watched(clock: Clock): Absences {
  const absences = new Absences(clock)
  absences.on({})
  return absences
}

const gone = new Error('ECONNREFUSED')
const isAway = (error: unknown): string | undefined => (error === gone ? 'refused' : undefined)

/** A server that can be taken away, and counts what it is asked. */
function openServer() {
  const server = { isThere: false, asked: 0 }
  const ask = async (): Promise<string> => {
    server.asked++
    if (!server.isThere) throw gone
    return 'an answer'
  }
  return { server, ask }
}

const { signal } = new AbortController()

describe('Absences', () => {
  it('lets nobody wait whom no run would stop', async () => {
    const { ask } = openServer()
    const asked = new Absences().ask({ server: 's', isAway, ask, signal })
    await expect(asked).rejects.toBe(gone)
  })

  it('lets one at a time find out whether a server is back, and all go on then', async () => {
    const { clock, pass } = fakeClock()
    const absences = watched(clock)
    const { server, ask } = openServer()
    const told: string[] = []
    absences.on({
      away: ({ server: name, why }) => told.push(`${name}: ${why}`),
      back: (_, seconds) => told.push(`back after ${seconds}`),
    })
    const awaited = { server: 'vllm', isAway, ask, signal }
    const answers = Array.from({ length: 50 }, () => absences.ask(awaited))
    await pass(60)
    expect(absences.some).toBe(true)
    expect(server.asked).toBeLessThan(50 + 12)
    server.isThere = true
    await pass(20)
    expect(await Promise.all(answers)).toEqual(Array(50).fill('an answer'))
    expect(absences.some).toBe(false)
    expect(told).toHaveLength(2)
    expect(told[0]).toBe('vllm: refused')
    expect(absences.seconds()).toBeGreaterThan(60)
    expect(absences.seconds()).toBeLessThan(75)
  })

  it('passes the search on from one who leaves', async () => {
    const { clock, pass } = fakeClock()
    const absences = watched(clock)
    const { server, ask } = openServer()
    const leaving = new AbortController()
    const first = absences.ask({
      server: 's',
      isAway,
      ask,
      signal: leaving.signal,
    })
    const second = absences.ask({ server: 's', isAway, ask, signal })
    await pass(3)
    leaving.abort(new Error('its time is up'))
    await expect(first).rejects.toThrow('its time is up')
    server.isThere = true
    await pass(20)
    expect(await second).toBe('an answer')
  })

  it('takes a request that stays unanswered as a sign that the server is there', async () => {
    const { clock, pass } = fakeClock()
    const absences = watched(clock)
    let answer = (_: string): void => {}
    const ask = () => new Promise<string>(resolve => (answer = resolve))
    const asked = absences.ask({ server: 's', isAway, ask, signal })
    await pass(30)
    expect(absences.some).toBe(false)
    answer('late')
    expect(await asked).toBe('late')
  })

  it('throws what is wrong otherwise, and knows that the server is there', async () => {
    const { clock, pass } = fakeClock()
    const absences = watched(clock)
    const ask = () => Promise.reject(new Error('400'))
    const asked = absences.ask({ server: 's', isAway, ask, signal })
    const refused = expect(asked).rejects.toThrow('400')
    const there = absences.whenThere({ signal })
    await pass(2)
    await refused
    await there
  })
})
