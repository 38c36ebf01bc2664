import { describe, expect, it } from 'vitest'
import { readRecorded } from '../../../../test/servers/recorded.ts'
import { readChoices, type VllmChoice } from './vllm-answer.ts'
import { readChoiceBody } from './vllm-body.ts'

const where = 'POST http://server/v1/completions'

/** Answers of a real server to samples of one choice, with what they were asked. */
const recorded = readRecorded('vllm').flatMap(({ path, status, request, body }) => {
  const prompt: readonly number[] | undefined = request?.token_ids ?? request?.prompt
  const { logprobs, n } = { ...request, ...request?.sampling_params }
  const isSample = /v1\/(?:generate|completions)$/.test(path) && status === 200 && body
  if (!isSample || !Array.isArray(prompt) || logprobs !== 1 || n !== 1) return []
  return [{ body, prompt }]
})

const read = (body: string, prompt: readonly number[], width = 0) => {
  const sent = Buffer.from(`{"prompt":[${prompt}],"stop":[]}`)
  return readChoiceBody(Buffer.from(body), { where, width, sent })
}

const parsed = (body: string, prompt: readonly number[]): VllmChoice =>
  readChoices(JSON.parse(body), { where, width: 0, prompt: Int32Array.from(prompt) })[0]!

describe("vLLM's answers, read from their bytes", () => {
  it('are what parsing them gives', () => {
    expect(recorded.length).toBeGreaterThan(20)
    for (const { body, prompt } of recorded) {
      const { ids, logprobs, finish } = parsed(body, prompt)
      // One without tokens is left to be parsed.
      if (ids.length === 0) continue
      // Each of them is read: reading none would be right as well, and as slow as before.
      expect(read(body, prompt)).toMatchObject({ ids, logprobs, finish })
    }
  })

  it('are left to be parsed where something is unusual', () => {
    const { body, prompt } = recorded[0]!
    const [first] = parsed(body, prompt).ids
    const changes: readonly (readonly [string, string])[] = [
      ['"token_ids":[', '"token_ids":[ '],
      [`"token_ids":[${first},`, '"token_ids":['],
      [`"tokens":["token_id:${first}"`, '"tokens":["<think>"'],
      ['"token_logprobs":[-', '"token_logprobs":['],
      ['"finish_reason":"stop"', '"finish_reason":"error"'],
      ['"choices":[{', '"choices":[{},{'],
      ['"logprobs":{', '"logprobs":null,"other":{'],
      ['"prompt_token_ids":[', '"prompt_token_ids":[1,'],
      ['"usage":{', '"usage":'],
    ]
    for (const [before, after] of changes) {
      const changed = body.replace(before, () => after)
      expect(changed).not.toBe(body)
      expect([before, read(changed, prompt)]).toEqual([before, undefined])
    }
    expect(read(body, prompt, 2)).toBeUndefined()
    expect(read(body, prompt.slice(1))).toBeUndefined()
  })

  it('are not taken from texts that look like lists', () => {
    const { body, prompt } = recorded[0]!
    const text = JSON.stringify('"token_ids":[1,2],"token_logprobs":[-1]]}')
    const changed = body.replace(/"text":"(?:[^"\\]|\\.)*"/, () => `"text":${text}`)
    expect(changed).not.toBe(body)
    expect(read(changed, prompt)?.ids).toEqual(parsed(body, prompt).ids)
  })
})
