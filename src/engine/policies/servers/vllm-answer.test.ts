import { describe, expect, it } from 'vitest'
import { readRecorded } from '../../../../test/servers/recorded.ts'
import { readChoiceBody, readChoices } from './vllm-answer.ts'

const where = 'POST http://server/v1/completions'

/** Answers of a real server to samples of one choice, with what they were asked. */
const recorded = readRecorded('vllm').flatMap(({ path, status, request, body }) => {
  const prompt: readonly number[] | undefined = request?.token_ids ?? request?.prompt
  const { logprobs, n } = { ...request, ...request?.sampling_params }
  const isSample = /v1\/(?:generate|completions)$/.test(path) && status === 200 && body
  if (!isSample || !Array.isArray(prompt) || logprobs !== 1 || n !== 1) return []
  return [{ body, prompt }]
})

const read = (body: string, prompt: readonly number[]) => {
  const sent = Buffer.from(`{"prompt":[${prompt}],"stop":[]}`)
  return readChoiceBody(Buffer.from(body), { where, width: 0, sent })
}

describe("vLLM's answers with one choice", () => {
  it('give the tokens of the choice, with what the prompt had in the cache', () => {
    expect(recorded.length).toBeGreaterThan(20)
    for (const { body, prompt } of recorded) {
      const asked = { where, width: 0, prompt: () => Int32Array.from(prompt) }
      const [choice] = readChoices(JSON.parse(body), asked)
      expect(read(body, prompt)).toMatchObject({ ids: choice!.ids, logprobs: choice!.logprobs })
    }
  })

  it('are refused where the prompt that the server repeats is not the one that was sent', () => {
    const { body, prompt } = recorded.find(each => each.body.includes('"prompt_token_ids":['))!
    expect(() => read(body, prompt.slice(1))).toThrow('the server read')
  })

  it('are refused with another number of choices', () => {
    const { body, prompt } = recorded[0]!
    const answer = JSON.parse(body)
    const twice = { ...answer, choices: [...answer.choices, ...answer.choices] }
    expect(() => read(JSON.stringify(twice), prompt)).toThrow('2 choices where 1 were asked for')
  })
})
