import { describe, expect, it } from 'vitest'
import { fakeClock } from '../../../../test/fake-clock.ts'
import { Absences } from './absences.ts'

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
  it('lets one at a time find out whether a server is back, and all go on then', async () => {
    const { clock, pass } = fakeClock()
    const absences = new Absences(clock)
    const { server, ask } = openServer()
    const told: string[] = []
    absences.on({
      away: ({ server: name, why }) => told.push(`${name}: ${why}`),
      back: (_, seconds) => told.push(`back after ${seconds}`),
    })
    const awaited = { server: 'vllm', cause: gone, isAway, ask, signal }
    const answers = Array.from({ length: 50 }, () => absences.outwait(awaited))
    await pass(60)
    expect(absences.some).toBe(true)
    expect(server.asked).toBeLessThan(12)
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
    const absences = new Absences(clock)
    const { server, ask } = openServer()
    const leaving = new AbortController()
    const first = absences.outwait({
      server: 's',
      cause: gone,
      isAway,
      ask,
      signal: leaving.signal,
    })
    const second = absences.outwait({ server: 's', cause: gone, isAway, ask, signal })
    await pass(3)
    leaving.abort(new Error('its time is up'))
    await expect(first).rejects.toThrow('its time is up')
    server.isThere = true
    await pass(20)
    expect(await second).toBe('an answer')
  })

  it('takes a request that stays unanswered as a sign that the server is there', async () => {
    const { clock, pass } = fakeClock()
    const absences = new Absences(clock)
    let answer = (_: string): void => {}
    const ask = () => new Promise<string>(resolve => (answer = resolve))
    const asked = absences.outwait({ server: 's', cause: gone, isAway, ask, signal })
    await pass(30)
    expect(absences.some).toBe(false)
    answer('late')
    expect(await asked).toBe('late')
  })

  it('throws what is wrong otherwise, and knows that the server is there', async () => {
    const { clock, pass } = fakeClock()
    const absences = new Absences(clock)
    const ask = () => Promise.reject(new Error('400'))
    const asked = absences.outwait({ server: 's', cause: gone, isAway, ask, signal })
    const refused = expect(asked).rejects.toThrow('400')
    const there = absences.whenThere({ signal })
    await pass(2)
    await refused
    await there
  })
})
