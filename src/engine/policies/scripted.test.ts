import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  describePolicy,
  expectTokens,
  sampleRequest,
} from '../../base/core/conformance/policy.conformance.ts'
import type { SampleKey } from '../../base/core/policy.ts'
import { openScript, readScript } from './script-file.ts'
import { type ScriptedAnswer, type ScriptedPolicy, scripted } from './scripted.ts'

describePolicy({
  name: 'scripted',
  faults: [],
  async open({ ids, logprobs }) {
    const policy = scripted(Array.from({ length: 9 }, () => ({ ids, logprobs })))
    return { policy, [Symbol.asyncDispose]: () => policy[Symbol.asyncDispose]() }
  },
})

const call = { signal: new AbortController().signal }
const encode = (text: string): Int32Array => Int32Array.from(Buffer.from(text))
const decode = (ids: Int32Array): string => Buffer.from(Uint8Array.from(ids)).toString()

async function say(policy: ScriptedPolicy, key: Partial<SampleKey>, parts = {}): Promise<string> {
  const request = sampleRequest({
    key: { task: 'a', member: 0, branch: '', turn: 0, ...key },
    stopIds: [46],
    ...parts,
  })
  return decode(expectTokens(await policy.sample(request, call)).segment.ids)
}

describe('scripted', () => {
  it('[S1] gives the n-th answer to the n-th sample of a member, whatever runs beside it', async () => {
    const policy = scripted(['one', 'two', { text: 'uno', task: 'b' }], { encode })
    const first = ['a', 'b', 'c'].map(task => say(policy, { task }))
    expect(await Promise.all(first)).toEqual(['one.', 'uno.', 'one.'])
    expect(await say(policy, { member: 1 })).toBe('one.')
    expect(await say(policy, { turn: 1 })).toBe('two.')
    await expect(say(policy, { task: 'b', turn: 1 })).rejects.toThrow(
      'scripted: task "b", member 0, asks at turn 1, but there is no answer left: all 1 were given',
    )
  })

  it('[S1] answers an attempt that is made again as if it had never been made', async () => {
    const policy = scripted(['one', 'two'], { encode })
    const made = async (making: string): Promise<readonly string[]> => [
      await say(policy, { making }),
      await say(policy, { making, turn: 1 }),
    ]
    expect([await say(policy, { making: '1' }), await made('2'), await made('3')]).toEqual([
      'one.',
      ['one.', 'two.'],
      ['one.', 'two.'],
    ])
  })

  it('goes on in a branch where the script is at its first turn', async () => {
    const policy = scripted(['one', 'two', 'three'], { encode })
    await say(policy, { turn: 1 })
    await say(policy, { turn: 2 })
    expect(await say(policy, { branch: '1', turn: 2 })).toBe('two.')
    expect(await say(policy, { branch: '1', turn: 3 })).toBe('three.')
  })

  it('ends texts as a turn ends, and not twice', async () => {
    const policy = scripted(['x', 'y.', 'stop here now', 'long'], { encode })
    expect(await say(policy, {})).toBe('x.')
    expect(await say(policy, { turn: 1 })).toBe('y.')
    expect(await say(policy, { turn: 2 }, { stopStrings: ['now', 'here'] })).toBe('stop here')
    expect(await say(policy, { turn: 3 }, { maxTokens: 2 })).toBe('lo')
  })

  it('keeps its prompts as they were', async () => {
    const policy = scripted([{ ids: [1] }])
    const ids = Int32Array.of(1, 2)
    await policy.sample(sampleRequest({ prompt: { ids, messages: [], tools: [] } }), call)
    ids[0] = 9
    expect(policy.prompts).toEqual([Int32Array.of(1, 2)])
  })

  it('asks for an encoder when it has a text to say', async () => {
    await expect(scripted(['hi']).sample(sampleRequest(), call)).rejects.toThrow('give `encode`')
  })
})

describe('script files', () => {
  it('reads texts and ids', async () => {
    const file = join(await mkdtemp(join(tmpdir(), 'espalier-')), 'answers.jsonl')
    await writeFile(file, '{"text":"hi"}\n\n{"ids":[1,2],"logprobs":[-0.5,-1],"task":7}\n')
    const policy = await openScript(file, { encode })
    expect(await say(policy, {})).toBe('hi.')
    const key = { task: '7', member: 0, branch: '', turn: 0 }
    const { segment } = expectTokens(await policy.sample(sampleRequest({ key }), call))
    expect(segment.logprobs).toEqual(Float32Array.of(-0.5, -1))
  })

  const bad: readonly (readonly [string, string])[] = [
    ['{"text":"a"', 'line 1: the answer of 11 characters is not JSON'],
    ['{"text":"a","ids":[1]}', 'either "text" or "ids"'],
    ['{"say":"a"}', 'no "say". Known: text, ids, logprobs, task'],
    ['{"ids":[1,-2]}', 'ids[1] must be a token id, got -2'],
    ['{"ids":[1,2],"logprobs":[-1]}', 'ids has 2 entries but logprobs 1'],
    ['{"ids":[1],"logprobs":[0.5]}', 'logprobs[0] must be the log-probability'],
    ['[1]', 'an answer must be an object'],
  ]
  it.each(bad)('refuses %s', (line, message) => {
    expect(() => readScript(line, 'x.jsonl')).toThrow(message)
  })

  it('accepts every answer that it may hold', () => {
    const answers: readonly ScriptedAnswer[] = readScript('{"ids":[]}\r\n{"text":""}', 'x')
    expect(answers.length).toBe(2)
  })
})

it('H8: says texts of any length', async () => {
  const text = 'a'.repeat(2_000_000)
  expect(await say(scripted([{ text }], { encode }), {})).toMatch(/^a+$/)
})
