import { expect, it } from 'vitest'
import { makeAllowedPolicies } from './allowed-policies.ts'

it('H2: a client names only policies that the operator has named', () => {
  const check = makeAllowedPolicies(['sglang:http://gpu:30000/', 'scripted:answers.jsonl'])
  for (const uri of ['sglang:http://gpu:30000', 'sglang:http://GPU:30000/']) {
    expect(() => check(uri)).not.toThrow()
  }
  for (const uri of [
    'sglang:http://evil.example',
    'sglang:http://gpu:30000@evil.example',
    'sglang:http://gpu:30000.evil.example/',
    'sglang:http://user@gpu:30000/',
    'sglang:http://gpu:30000/?x=http://gpu:30000',
    'vllm:http://gpu:30000',
    'openai:http://169.254.169.254/latest/meta-data',
    'sglang:file:///etc/passwd',
    'sglang:',
  ]) {
    expect(() => check(uri), uri).toThrow('samples only from')
  }
  // Its end is looked at once, however often it could begin.
  const long = `sglang:http://gpu:30000${'/'.repeat(300_000)}x`
  expect(() => check(long)).toThrow('samples only from')
  for (const uri of ['scripted:answers.jsonl', 'replay:/etc/passwd', 'embedded', 'file:///x', '']) {
    expect(() => check(uri), uri).toThrow('a policy is one of')
  }
})
