import { appendFile, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openSglangServer } from '../../../test/servers/sglang.ts'
import {
  describePolicy,
  expectTokens,
  sampleRequest,
} from '../../base/core/conformance/policy.conformance.ts'
import type { Policy, TokenSample } from '../../base/core/policy.ts'
import { sampled } from '../../base/core/segment.ts'
import { readSample, sampleLine } from './cassette.ts'
import { openReplay } from './replayed.ts'
import { scripted } from './scripted.ts'
import { openSglang } from './servers/sglang.ts'
import { withRecord } from './with-record.ts'

const call = () => ({ signal: AbortSignal.timeout(50_000) })

async function newFile(): Promise<string> {
  return join(await mkdtemp(join(tmpdir(), 'espalier-')), 'cassette.jsonl')
}

describePolicy({
  name: 'recording',
  faults: [],
  async open({ ids, logprobs }) {
    const answers = Array.from({ length: 9 }, () => ({ ids, logprobs }))
    const policy = await withRecord(scripted(answers), await newFile())
    return { policy, [Symbol.asyncDispose]: () => policy[Symbol.asyncDispose]() }
  },
})

const turns = [0, 1, 1, 2]
const requests = turns.map(turn => {
  return sampleRequest({ key: { task: 'a', member: 3, branch: '0.1', turn }, topLogprobs: 2 })
})

async function samplesOf(policy: Policy): Promise<readonly unknown[]> {
  const samples: unknown[] = []
  for (const request of requests) samples.push(await policy.sample(request, call()))
  samples.push(await policy.sampleSeveral?.(sampleRequest(), [1, 2, 3], call()))
  samples.push(await policy.score?.(Int32Array.of(5, 6, 7), 1, { temperature: 1 }, call()))
  samples.push(await policy.describe?.(call()))
  return samples
}

describe('recorded and replayed', () => {
  it('[S1] answers the same without a server', async () => {
    const file = await newFile()
    let count = 0
    await using server = await openSglangServer({
      answer: () => {
        const ids = [count++, 151_000, 2]
        return { ids, logprobs: ids.map(id => -Math.sqrt(id + 0.1) / 1000), finish: 'stop' }
      },
    })
    const recording = await withRecord(openSglang(server.url), file)
    const recorded = await samplesOf(recording)
    await recording[Symbol.asyncDispose]()
    const replay = await openReplay(file)
    expect(replay.capabilities).toEqual(recording.capabilities)
    expect(await samplesOf(replay)).toEqual(recorded)
    const again = await readFile(file)
    expect(await samplesOf(await openReplay(file))).toEqual(recorded)
    expect(await readFile(file)).toEqual(again)
  })

  it('names what it does not have', async () => {
    const file = await newFile()
    const recording = await withRecord(scripted([{ ids: [1] }, { ids: [2] }]), file)
    const key = { task: 'a', member: 0, branch: '', turn: 0 }
    await recording.sample(sampleRequest({ key }), call())
    await recording[Symbol.asyncDispose]()
    const replay = await openReplay(file)
    await expect(
      replay.sample(sampleRequest({ key: { ...key, branch: 'x', turn: 4 } }), call()),
    ).rejects.toThrow(
      'has no answer for task "a", member 0, branch "x", turn 4. For this member it has turns 0 to 0.',
    )
    await expect(
      replay.sample(sampleRequest({ key: { ...key, task: 'b' } }), call()),
    ).rejects.toThrow('none for this task')
    const prompt = { ...sampleRequest().prompt, ids: Int32Array.of(1) }
    await expect(replay.sample(sampleRequest({ key, prompt }), call())).rejects.toThrow(
      'recorded with another prompt',
    )
  })

  it('fails again where the policy failed', async () => {
    const file = await newFile()
    await using server = await openSglangServer({ fault: () => 'unavailable' })
    const recording = await withRecord(openSglang(server.url), file)
    const messages: unknown[] = []
    await recording.sample(sampleRequest(), call()).catch(cause => messages.push(String(cause)))
    await recording[Symbol.asyncDispose]()
    const replay = await openReplay(file)
    await replay.sample(sampleRequest(), call()).catch(cause => messages.push(String(cause)))
    expect(messages[0]).toContain('ServerError: POST')
    expect(messages[1]).toBe(messages[0])
  })

  it('adds to a cassette of the same policy: the last record counts', async () => {
    const file = await newFile()
    for (const id of [1, 2]) {
      await using recording = await withRecord(scripted([{ ids: [id] }]), file)
      await recording.sample(sampleRequest(), call())
    }
    const replay = await openReplay(file)
    const { segment } = expectTokens(await replay.sample(sampleRequest(), call()))
    expect([...segment.ids]).toEqual([2])
    await expect(withRecord(scripted([], { name: 'other' }), file)).rejects.toThrow(
      'is no cassette of other',
    )
  })

  it('forgives a torn last line only', async () => {
    const file = await newFile()
    const recording = await withRecord(scripted([{ ids: [1] }]), file)
    await recording.sample(sampleRequest(), call())
    await recording[Symbol.asyncDispose]()
    await appendFile(file, '{"sample":["a"')
    await (await openReplay(file)).sample(sampleRequest(), call())
    await appendFile(file, '\n{"describe":{}}\n')
    await expect(openReplay(file)).rejects.toThrow('line 3 is not JSON')
    await writeFile(file, '{"some":"thing"}\n')
    await expect(openReplay(file)).rejects.toThrow('not a cassette of format 1')
  })

  it('reads back every 32-bit float', () => {
    const float = fc.float({ noNaN: true, max: 0, min: Math.fround(-1e30) })
    fc.assert(
      fc.property(fc.array(float, { minLength: 1 }), values => {
        const logprobs = Float32Array.from(values)
        const sample: TokenSample = {
          kind: 'tokens',
          segment: sampled({
            ids: new Int32Array(values.length),
            logprobs,
            version: { from: 1, to: 2 },
            entropies: logprobs.map(value => -value),
            top: { width: 1, ids: new Int32Array(values.length), logprobs },
          }),
          finish: { kind: 'guard', guard: 'loop' },
          usage: { prompt: 1, sampled: values.length, seconds: 0.25, cached: 1 },
        }
        const line = sampleLine('["a",0,"",0,0]', 'digest', sample)
        expect(readSample(JSON.parse(line), 'here').sample).toEqual(sample)
      }),
      { seed: 3, numRuns: process.env.ESPALIER_SOAK ? 5000 : 200 },
    )
  })
})

describe('H8: a cassette that a crash has torn', () => {
  it.each(['{"sample":[["a"', '{'])('is mended when recording goes on (%j)', async torn => {
    const file = await newFile()
    const answers = Array.from({ length: 3 }, () => ({ ids: [1, 2], logprobs: [-1, -2] }))
    const first = await withRecord(scripted(answers), file)
    await first.sample(sampleRequest({}), call())
    await first[Symbol.asyncDispose]()
    const before = await readFile(file, 'utf8')
    await appendFile(file, torn)
    const second = await withRecord(scripted(answers), file)
    const key = { task: 'b', member: 0, branch: '', turn: 0 }
    await second.sample(sampleRequest({ key }), call())
    await second[Symbol.asyncDispose]()
    const lines = (await readFile(file, 'utf8')).trim().split('\n')
    expect(lines.filter(line => line !== '').map(line => typeof JSON.parse(line))).toEqual(
      Array.from({ length: before.trim().split('\n').length + 1 }, () => 'object'),
    )
    await using _replay = await openReplay(file)
  })
})
