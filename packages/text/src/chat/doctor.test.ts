import { describe, expect, it } from 'vitest'
import { random, seedOf } from '../../../../src/base/math/random.ts'
import { hasTemplates, openTemplate } from '../../../../test/fixtures/chat-templates.ts'
import { describeDiagnosis } from './diagnosis.ts'
import { type Diagnosis, examine } from './doctor.ts'

const examined = new Map<string, Diagnosis>()

function examineTemplate(name: string): Diagnosis {
  const known = examined.get(name)
  if (known) return known
  const renderer = openTemplate(name, { patch: true })
  const randomness = (index: number) => random(seedOf(name, index))
  const diagnosis = examine(renderer, { conversations: 12, random: randomness })
  examined.set(name, diagnosis)
  return diagnosis
}

/** What is said under a heading. */
function said(diagnosis: Diagnosis, heading: string): string {
  const section = describeDiagnosis(diagnosis).find(each => each.heading === heading)
  return section?.sentences.join(' ') ?? ''
}

if (!hasTemplates) console.warn('skipped: no published chat templates beside this checkout')

describe.skipIf(!hasTemplates)('examine', () => {
  it('says of an appending template that a chat endpoint would show the same', () => {
    const diagnosis = examineTemplate('Qwen-Qwen2.5-7B-Instruct')
    expect(diagnosis.problems).toEqual([])
    expect(diagnosis.audit.exact).toBe(diagnosis.audit.turns)
    expect(diagnosis.replies.read).toBe(diagnosis.replies.turns)
    expect(said(diagnosis, 'rewrites')).toBe('None: the template only appends.')
    expect(said(diagnosis, 'preserve')).toContain('A chat endpoint would show the policy the same.')
  })

  it('says what a policy goes on seeing that a chat endpoint would have stripped', () => {
    const diagnosis = examineTemplate('Qwen-Qwen3-0.6B')
    expect(diagnosis.problems).toEqual([])
    expect(diagnosis.audit.rewritten).toBeGreaterThan(0)
    expect(said(diagnosis, 'preserve')).toMatch(
      /goes on seeing the thinking of its earlier turns.*a chat endpoint would have stripped/,
    )
    expect(said(diagnosis, 'faithful')).toMatch(/Forks a new path .* forked after \d+ % /)
    expect(said(diagnosis, 'audit')).toContain('the template removed the thinking of a turn')
    expect(said(diagnosis, 'patches')).toContain('qwen3-orphan-think: ')
  })

  it('says that a policy begins in thought, and what becomes of the opened block', () => {
    const diagnosis = examineTemplate('MiniMax-M2')
    expect(said(diagnosis, 'prompt')).toContain('The policy begins within a thinking block.')
    expect(said(diagnosis, 'rewrites')).toContain(
      'The prompt of a turn that did not think ended with "<think>\\n", where history shows "WORDS',
    )
  })

  it.each([
    ['GLM-4.6', 'turn', 'the next message opens it'],
    ['openai-gpt-oss-120b', 'turn', 'A turn that calls ends in <|call|>.'],
    ['openai-gpt-oss-120b', 'rewrites', 'end in <|end|> instead of <|return|>'],
    ['openai-gpt-oss-120b', 'limits', 'only the first is shown'],
    ['mistralai-Mistral-Nemo-Instruct-2407', 'prompt', 'the message before it does'],
    ['mistralai-Mistral-Nemo-Instruct-2407', 'preserve', 'tools where they were first written'],
    ['meta-llama-Llama-3.1-8B-Instruct', 'limits', 'results of several calls'],
    ['GigaChat3-10B-A1.8B', 'limits', 'has <|message_sep|> in its middle'],
    ['HuggingFaceTB-SmolLM3-3B', 'limits', 'Calls of earlier turns are left out'],
    ['google-gemma-2-2b-it', 'limits', 'System messages are refused: '],
    ['Kimi-K2-Instruct', 'limits', 'A turn that calls cannot be rendered: SecurityError'],
    ['Kimi-K3', 'borders', 'no token can merge'],
  ])('says of %s under %s that %s', (name, heading, words) => {
    expect(said(examineTemplate(name), heading)).toContain(words)
  })

  it('finds what defeats exact tokens', () => {
    const rwkv = examineTemplate('llama-cpp-rwkv-world')
    expect(rwkv.problems).toEqual([expect.stringContaining('no control token stands at the end')])
    const fireworks = examineTemplate('fireworks-ai-llama-3-firefunction-v2')
    expect(said(fireworks, 'problems')).toContain('cannot render a plain question: UndefinedError')
    expect(said(fireworks, 'preserve')).toBe('')
  })

  it('finds calls that nobody reads', () => {
    const { replies } = examine(openTemplate('Qwen3-Coder', { toolFormat: 'kimi_k2' }), {
      conversations: 12,
      random: index => random(seedOf('wrong', index)),
    })
    expect(replies.read).toBeLessThan(replies.turns)
    expect(replies.misread).toMatch(/^0 calls were read of/)
  })
})
