import { afterEach, expect, it, vi } from 'vitest'
import { type Policy, plainCapabilities, type SampleRequest } from '../../base/core/policy.ts'
import { sampled } from '../../base/core/segment.ts'
import { openWeightsDesk } from './rollouts-policy.ts'

afterEach(() => void vi.useRealTimers())

const call = { signal: new AbortController().signal }

/** A server that tells no version and answers when it is let. */
function openSlow() {
  const answers: (() => void)[] = []
  const policy: Policy = {
    name: 'slow',
    capabilities: plainCapabilities,
    async sample() {
      await new Promise<void>(resolve => answers.push(resolve))
      const segment = sampled({
        ids: Int32Array.of(1),
        logprobs: Float32Array.of(-1),
        version: { from: 0, to: 0 },
      })
      const usage = { prompt: 1, sampled: 1, seconds: 0 }
      return { kind: 'tokens', segment, finish: { kind: 'stop' }, usage }
    },
    async [Symbol.asyncDispose]() {},
  }
  return { policy, answers }
}

it('a sample is labelled with the versions announced when it began and when it ended', async () => {
  const desk = openWeightsDesk({ tell() {} })
  const { policy, answers } = openSlow()
  const watched = desk.watch(policy)
  const versionWhile = async (change: () => void): Promise<unknown> => {
    const sampling = watched.sample({} as SampleRequest, call)
    while (answers.length === 0) await new Promise(setImmediate)
    change()
    answers.shift()!()
    const sample = await sampling
    return sample.kind === 'tokens' && sample.segment.version
  }
  expect(await versionWhile(() => {})).toEqual({ from: 0, to: 0 })
  expect(await versionWhile(() => desk.announce(4))).toEqual({ from: 0, to: 4 })
  expect(await versionWhile(() => {})).toEqual({ from: 4, to: 4 })
  expect(await versionWhile(() => desk.announce(6))).toEqual({ from: 4, to: 6 })
})

it('those elsewhere are told in order, and a pause is over when they have heard it', async () => {
  const told: string[] = []
  let hear = (): void => {}
  const desk = openWeightsDesk({
    tell() {},
    elsewhere: {
      async pause() {
        told.push('pause')
        await new Promise<void>(resolve => {
          hear = resolve
        })
        told.push('paused')
      },
      async resume(version) {
        told.push(`resume ${version}`)
      },
    },
  })
  const pausing = desk.pause(60)
  const announcing = desk.announce(3)
  const resuming = desk.resume()
  await new Promise(setImmediate)
  expect(told).toEqual(['pause'])
  hear()
  await Promise.all([pausing, announcing, resuming])
  expect(told).toEqual(['pause', 'paused', 'resume 3'])
  const interrupting = desk.announce(4, { interrupt: true })
  await new Promise(setImmediate)
  hear()
  await interrupting
  expect(told.slice(3)).toEqual(['pause', 'paused', 'resume 4'])
})

it('a pause that is not renewed ends by itself, and that is told', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const told: string[] = []
  const elsewhere = {
    pause: async () => void told.push('pause'),
    resume: async () => void told.push('resume'),
  }
  const desk = openWeightsDesk({ elsewhere, tell: line => told.push(line) })
  await desk.pause(60)
  await vi.advanceTimersByTimeAsync(59_000)
  await desk.pause(120)
  await vi.advanceTimersByTimeAsync(119_000)
  expect(desk.pausedFor).toBe(120)
  await vi.advanceTimersByTimeAsync(1000)
  expect(desk.pausedFor).toBe(null)
  const line = 'paused sampling and neither resumed it nor paused it again within 120 s: it goes on'
  expect(told).toEqual(['pause', 'pause', line, 'resume'])
})

it('a pause that was resumed ends no later one', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const desk = openWeightsDesk({ tell() {} })
  await desk.pause(60)
  await desk.resume()
  await vi.advanceTimersByTimeAsync(59_000)
  await desk.pause(60)
  await vi.advanceTimersByTimeAsync(59_000)
  expect(desk.pausedFor).toBe(60)
})
