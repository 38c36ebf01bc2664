import { describe, expect, it } from 'vitest'
import type { Speaker } from '../../base/core/speaker.ts'
import { ServerError } from '../../engine/policies/transport/server-error.ts'
import { patientSpeaker } from './patient-speaker.ts'

const call = { signal: new AbortController().signal }

/** A speaker that fails with these errors first, and the waits that patience with it takes. */
function speakerAfter(errors: readonly Error[]): { speaker: Speaker; waits: number[] } {
  const left = [...errors]
  const waits: number[] = []
  const impatient: Speaker = {
    name: 'busy',
    say: async () => {
      const error = left.shift()
      if (error) throw error
      const message = { role: 'assistant', content: 'Hello' } as const
      return { message, finish: 'stop', usage: { prompt: 1, sampled: 1 } }
    },
  }
  const clock = {
    now: () => 0,
    sleep: async (milliseconds: number) => void waits.push(milliseconds),
  }
  return { speaker: patientSpeaker(impatient, { attempts: 3, clock }), waits }
}

const busy = new ServerError('status', 'busy', { status: 429, retryAfterSeconds: 2 })

describe('a patient speaker', () => {
  it('asks again where the server was busy, later each time and not before it was told', async () => {
    const { speaker, waits } = speakerAfter([busy, new ServerError('connection', 'cut')])
    expect((await speaker.say([], call)).message.content).toBe('Hello')
    expect(waits[0]).toBeGreaterThan(2250)
    expect(waits[0]).toBeLessThan(2500)
    expect(waits[1]).toBeGreaterThan(500)
    expect(waits[1]).toBeLessThan(1000)
  })

  it('gives up in the end, and at once where asking again cannot help', async () => {
    const { speaker, waits } = speakerAfter([busy, busy, busy])
    await expect(speaker.say([], call)).rejects.toThrow('busy')
    expect(waits).toHaveLength(2)
    const wrong = speakerAfter([new ServerError('answer', 'not JSON')])
    await expect(wrong.speaker.say([], call)).rejects.toThrow('not JSON')
    expect(wrong.waits).toHaveLength(0)
  })

  it('does not wait for a server that asks for days', async () => {
    const closed = new ServerError('status', 'closed', { status: 429, retryAfterSeconds: 1e7 })
    const { speaker, waits } = speakerAfter([closed])
    await expect(speaker.say([], call)).rejects.toThrow('closed')
    expect(waits).toHaveLength(0)
  })
})
