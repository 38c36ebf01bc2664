import { describe, expect, it } from 'vitest'
import { fakeClock } from '../../../test/fake-clock.ts'
import { openVllmServer } from '../../../test/servers/vllm.ts'
import {
  type Policy,
  plainCapabilities,
  plainSampling,
  type SampleRequest,
} from '../../base/core/policy.ts'
import { Absences } from '../../base/core/process/absences.ts'
import type { WrittenWeights } from '../../base/core/trainer.ts'
import { openPolicy } from './open-policy.ts'
import { ServerError } from './transport/server-error.ts'
import { withLastWeights } from './with-absences.ts'

const request: SampleRequest = {
  prompt: { ids: Int32Array.of(1, 2), messages: [], tools: [] },
  maxTokens: 4,
  sampling: plainSampling,
  stopIds: [],
  stopStrings: [],
  seed: 1,
  key: { task: 't', member: 0, branch: '', turn: 0 },
  session: 's',
}
const call = { signal: AbortSignal.timeout(20_000) }
const answer = () => ({ ids: [5], logprobs: [-1], finish: 'stop' as const })

describe('withAbsences', () => {
  it('waits for a server that was killed and is started again, and counts no try', async () => {
    const { clock, pass } = fakeClock()
    const absences = new Absences(clock)
    absences.on({})
    const retried: string[] = []
    const retries = { attempts: 2, onRetry: () => retried.push('retry') }
    const first = await openVllmServer({ answer })
    const port = Number(new URL(first.url).port)
    await using policy = await openPolicy(`vllm:${first.url}`, { thread: false, absences, retries })
    await policy.sample(request, call)
    await first.close()
    const waiting = Array.from({ length: 8 }, () => policy.sample(request, call))
    await pass(40)
    expect(absences.some).toBe(true)
    await using again = await openVllmServer({ answer, port })
    await pass(60)
    expect(await Promise.all(waiting)).toHaveLength(8)
    expect(again.seen.length).toBeGreaterThanOrEqual(8)
    expect(retried.length).toBeLessThan(3)
    expect(absences.some).toBe(false)
  })

  it('waits while a server answers that nothing is there yet, and fails at once where it refuses', async () => {
    const { clock, pass } = fakeClock()
    const absences = new Absences(clock)
    absences.on({})
    const faults = ['unavailable', 'unavailable', 'unavailable', undefined, 'too-long'] as const
    await using server = await openVllmServer({ answer, fault: at => faults[at] })
    await using policy = await openPolicy(`vllm:${server.url}`, {
      thread: false,
      absences,
      retries: false,
    })
    const waiting = policy.sample(request, call)
    await pass(30)
    await waiting
    await expect(policy.sample(request, call)).rejects.toThrow(/\b400\b/)
    expect(absences.some).toBe(false)
  })

  it('goes on with the other servers, and tells who is missing', async () => {
    const { clock } = fakeClock()
    const absences = new Absences(clock)
    absences.on({})
    const moved: string[] = []
    await using there = await openVllmServer({ answer })
    const gone = await openVllmServer({ answer })
    await gone.close()
    await using policy = await openPolicy([`vllm:${gone.url}`, `vllm:${there.url}`], {
      thread: false,
      absences,
      onMoved: (server, why) => moved.push(`${server} ${why}`),
    })
    for (let at = 0; at < 4; at++) await policy.sample({ ...request, session: String(at) }, call)
    expect(there.seen).toHaveLength(4)
    expect(absences.some).toBe(false)
    expect(moved).toHaveLength(1)
    expect(moved[0]).toContain('ECONNREFUSED')
  })
})

describe('withLastWeights', () => {
  it('loads the last weights again into a server that was away', async () => {
    const done: string[] = []
    let isAway = false
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    const policy: Policy = {
      name: 'engine',
      capabilities: plainCapabilities,
      async sample() {
        if (isAway) throw new ServerError('connection', 'refused', { cause: refused })
        done.push('sample')
        throw new Error('enough')
      },
      weights: { update: async ({ version }: WrittenWeights) => void done.push(`load ${version}`) },
      async [Symbol.asyncDispose]() {},
    }
    const kept = withLastWeights(policy)
    const ask = () => kept.sample(request, call).catch(() => {})
    await ask()
    await kept.weights!.update({ path: 'x', kind: 'model', version: 7 }, call)
    await ask()
    isAway = true
    await ask()
    isAway = false
    await ask()
    await ask()
    expect(done).toEqual(['sample', 'load 7', 'sample', 'load 7', 'sample', 'sample'])
  })
})
