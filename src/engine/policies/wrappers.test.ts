import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type Fault, faults } from '../../../test/servers/serving.ts'
import { openSglangServer, openSglangStage } from '../../../test/servers/sglang.ts'
import { describePolicy, sampleRequest } from '../../base/core/conformance/policy.conformance.ts'
import { type Policy, PromptTooLong } from '../../base/core/policy.ts'
import type { Clock } from '../../base/core/process/clock.ts'
import { scripted } from './scripted.ts'
import { openSglang } from './servers/sglang.ts'
import { ServerError } from './transport/server-error.ts'
import { withBalance } from './with-balance.ts'
import { withLimit } from './with-limit.ts'
import { type Retry, withRetries } from './with-retries.ts'

const call = () => ({ signal: AbortSignal.timeout(50_000) })

/** A clock on which waiting takes no time, and what was waited for. */
function fastClock(): Clock & { readonly waits: number[] } {
  let now = 0
  const waits: number[] = []
  return {
    waits,
    now: () => now,
    async sleep(milliseconds, signal) {
      signal.throwIfAborted()
      waits.push(milliseconds)
      now += milliseconds
    },
  }
}

/** A policy of which each sample does what it is told, and where it was asked from. */
function acting(name: string, act: (index: number) => Promise<void> | void) {
  const inner = scripted(
    Array.from({ length: 1000 }, () => ({ ids: [1] })),
    { name },
  )
  let count = 0
  const policy: Policy = {
    ...inner,
    async sample(request, each) {
      await act(count++)
      return inner.sample(request, each)
    },
  }
  return {
    policy,
    get asked() {
      return count
    },
  }
}

const broken = (problem: 'status' | 'connection', status?: number, retryAfterSeconds?: number) =>
  new ServerError(problem, 'it broke', {
    ...(status === undefined ? {} : { status }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  })

describePolicy({
  name: 'sglang in all wrappers',
  faults,
  open: scene =>
    openSglangStage(scene, (url, options) => {
      const servers = [0, 1].map(() => openSglang(url, options))
      const retries = { attempts: 2, firstWaitSeconds: 0.001 }
      return withLimit(withRetries(withBalance(servers), retries), 16)
    }),
})

describe('withRetries', () => {
  it('waits longer each time, spread, as long as attempts last', async () => {
    const clock = fastClock()
    const retries: Retry[] = []
    const failing = acting('p', () => {
      throw broken('status', 503)
    })
    const patient = withRetries(failing.policy, {
      attempts: 5,
      clock,
      random: () => 0.5,
      onRetry: retry => retries.push(retry),
    })
    await expect(patient.sample(sampleRequest(), call())).rejects.toThrow(
      'gave up after 5 attempts in 5.6 s: it broke',
    )
    expect(clock.waits).toEqual([375, 750, 1500, 3000])
    expect(retries.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4])
    expect(failing.asked).toBe(5)
  })

  it('spreads waits by the key of the sample, the same every time', async () => {
    const waitsOf = async (member: number): Promise<readonly number[]> => {
      const clock = fastClock()
      const { policy } = acting('p', index => {
        if (index < 3) throw broken('connection')
      })
      const key = { task: 'a', member, branch: '', turn: 0 }
      await withRetries(policy, { clock }).sample(sampleRequest({ key }), call())
      return clock.waits
    }
    expect(await waitsOf(1)).toEqual(await waitsOf(1))
    expect(await waitsOf(1)).not.toEqual(await waitsOf(2))
  })

  it('waits as long as the server asks for', async () => {
    const clock = fastClock()
    const { policy } = acting('p', index => {
      if (index === 0) throw broken('status', 429, 40)
    })
    await withRetries(policy, { clock, random: () => 0 }).sample(sampleRequest(), call())
    expect(clock.waits).toEqual([40_000])
  })

  it('does not wait past its deadline', async () => {
    const clock = fastClock()
    const { policy } = acting('p', () => {
      throw broken('status', 429, 40)
    })
    const work = withRetries(policy, { clock, deadlineSeconds: 30 }).sample(sampleRequest(), call())
    await expect(work).rejects.toThrow(/^it broke$/)
    expect(clock.waits).toEqual([])
  })

  it('stops waiting when its signal aborts', async () => {
    const { policy } = acting('p', () => {
      throw broken('status', 503, 1000)
    })
    const controller = new AbortController()
    const onRetry = (): void => queueMicrotask(() => controller.abort(new Error('enough')))
    const { signal } = controller
    const work = withRetries(policy, { onRetry }).sample(sampleRequest(), { signal })
    await expect(work).rejects.toThrow('enough')
  })

  const passing: readonly Fault[] = ['busy', 'unavailable', 'html', 'refused', 'reset']
  it.each(passing)('tries again over HTTP: %s', async fault => {
    await using server = await openSglangServer({ fault: at => (at < 2 ? fault : undefined) })
    await using policy = withRetries(openSglang(server.url), { firstWaitSeconds: 0.01 })
    const { finish } = await policy.sample(sampleRequest(), call())
    expect(finish).toEqual({ kind: 'stop' })
    expect(server.seen.length).toBe(3)
  })

  const lasting: readonly Fault[] = ['truncated', 'lengths', 'nan', 'hang']
  it.each(lasting)('does not try again over HTTP: %s', async fault => {
    await using server = await openSglangServer({ fault: () => fault })
    // The request must reach the server before its deadline, on a busy machine too.
    const deadlineSeconds = fault === 'hang' ? 1 : 60
    await using policy = withRetries(openSglang(server.url, { deadlineSeconds }), {
      firstWaitSeconds: 0.01,
    })
    await expect(policy.sample(sampleRequest(), call())).rejects.toThrow(ServerError)
    expect(server.seen.length).toBe(1)
  })

  it('does not try again over HTTP what does not fit the context, and says so by its class', async () => {
    await using server = await openSglangServer({ fault: () => 'too-long' })
    await using policy = withRetries(openSglang(server.url), { firstWaitSeconds: 0.01 })
    await expect(policy.sample(sampleRequest(), call())).rejects.toThrow(PromptTooLong)
    expect(server.seen.length).toBe(1)
  })
})

describe('withBalance', () => {
  const wait = async (): Promise<void> => void (await nextTurn())
  const sampleOf = async (policy: Policy, session: string) => {
    const { usage } = await policy.sample(sampleRequest({ session }), call())
    return usage.server
  }

  it('keeps sessions where they are and spreads new ones by load', async () => {
    const [one, two] = [acting('one', wait), acting('two', wait)]
    const policy = withBalance([one.policy, two.policy])
    const sessions = ['a', 'b', 'c', 'd']
    const first = await Promise.all(sessions.map(session => sampleOf(policy, session)))
    expect(first).toEqual(['one', 'two', 'one', 'two'])
    const second = await Promise.all(['d', 'c', 'b', 'a'].map(each => sampleOf(policy, each)))
    expect(second).toEqual(['two', 'one', 'two', 'one'])
  })

  it('moves a session when its server is much busier', async () => {
    const [one, two] = [acting('one', wait), acting('two', wait)]
    const policy = withBalance([one.policy, two.policy], { slack: 3 })
    await sampleOf(policy, 'a')
    const servers = await Promise.all(Array.from({ length: 10 }, () => sampleOf(policy, 'a')))
    expect(new Set(servers)).toEqual(new Set(['one', 'two']))
  })

  it('leaves a dead server alone and tries it again', async () => {
    const clock = fastClock()
    let isDead = true
    const one = acting('one', () => {
      if (isDead) throw broken('connection')
    })
    const two = acting('two', () => {})
    const policy = withBalance([one.policy, two.policy], { clock })
    await expect(sampleOf(policy, 'a')).rejects.toThrow('it broke')
    for (const session of ['a', 'b', 'c']) expect(await sampleOf(policy, session)).toBe('two')
    expect(one.asked).toBe(1)
    await clock.sleep(1001, new AbortController().signal)
    await expect(sampleOf(policy, 'd')).rejects.toThrow('it broke')
    expect(await sampleOf(policy, 'd')).toBe('two')
    isDead = false
    await clock.sleep(2001, new AbortController().signal)
    expect(await sampleOf(policy, 'e')).toBe('one')
    expect(await sampleOf(policy, 'e')).toBe('one')
  })

  it('survives the death of a server over HTTP, with retries around it', async () => {
    const one = await openSglangServer()
    await using two = await openSglangServer()
    const both = [openSglang(one.url), openSglang(two.url)]
    await using policy = withRetries(withBalance(both), { firstWaitSeconds: 0.01 })
    const draw = (session: number) =>
      policy.sample(sampleRequest({ session: String(session) }), call())
    await Promise.all(Array.from({ length: 10 }, (_, session) => draw(session)))
    await one.close()
    const samples = await Promise.all(Array.from({ length: 10 }, (_, session) => draw(session)))
    expect(new Set(samples.map(({ usage }) => usage.server))).toEqual(
      new Set([`sglang:${two.url}`]),
    )
  })

  it('does what all can do, and refuses servers that do not belong together', async () => {
    await using server = await openSglangServer()
    const one = openSglang(server.url)
    const raw = openSglang(server.url, { logprobs: 'raw' })
    expect(() => withBalance([one, raw])).toThrow('cannot be one policy')
    const other: Policy = { ...one, describe: async () => ({ model: 'other', context: 9 }) }
    await expect(withBalance([one, other]).describe?.(call())).rejects.toThrow(
      'serves "test/model" but',
    )
    const smaller: Policy = { ...one, describe: async () => ({ model: 'test/model', context: 9 }) }
    expect(await withBalance([one, smaller]).describe?.(call())).toEqual({
      model: 'test/model',
      context: 9,
    })
    const { score: _, ...lesser } = { ...one, capabilities: { ...one.capabilities, score: false } }
    expect(withBalance([one, lesser]).score).toBeUndefined()
    await Promise.all([one, raw].map(each => each[Symbol.asyncDispose]()))
  })
})

describe('withLimit', () => {
  it('never runs more than its limit at one time', async () => {
    let running = 0
    let most = 0
    const { policy } = acting('p', async () => {
      most = Math.max(most, ++running)
      await nextTurn()
      running--
    })
    const limited = withLimit(policy, 3)
    const draws = Array.from({ length: 20 }, (_, member) =>
      limited.sample(sampleRequest({ key: { task: 'a', member, branch: '', turn: 0 } }), call()),
    )
    await Promise.all(draws)
    expect(most).toBe(3)
    expect(() => withLimit(policy, 0)).toThrow('at least 1, got 0')
  })
})
