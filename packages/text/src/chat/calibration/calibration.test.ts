import { describe, expect, it } from 'vitest'
import {
  hasTemplates,
  openQwenTokenizer,
  openTemplate,
} from '../../../../../test/fixtures/chat-templates.ts'
import type { Profile } from './calibration.ts'

/** What probing must find out, by template: stops in order, and what else is telling. */
const expectations: readonly (readonly [
  name: string,
  stops: readonly string[],
  more: Partial<Profile>,
])[] = [
  ['Qwen-Qwen3-0.6B', ['<|im_end|>'], { separator: '\n', toolResults: 'grouped' }],
  ['Qwen3.5-4B', ['<|im_end|>'], { opensThinking: true }],
  ['GLM-4.6', ['<|user|>', '<|observation|>'], { separator: '', opensThinking: false }],
  ['GLM-4.7-Flash', ['<|user|>', '<|observation|>'], { opensThinking: true }],
  ['openai-gpt-oss-120b', ['<|return|>', '<|call|>'], { toolResults: 'separate' }],
  ['Apertus-8B-Instruct', ['<|assistant_end|>', '<|tools_suffix|>'], { toolResults: 'grouped' }],
  ['meetkai-functionary-medium-v3.1', ['<|eot_id|>', '<|eom_id|>'], {}],
  ['upstage-Solar-Open-100B', ['<|end|>', '<|calls|>'], { toolResults: 'grouped' }],
  ['google-gemma-4-31B-it', ['<turn|>', '<|tool_response>'], { separator: '\n' }],
  ['poolside-Laguna-S-2.1', ['</assistant>'], { opensThinking: true, separator: '\n' }],
  ['NVIDIA-Nemotron-Nano-v2', ['<SPECIAL_12>'], {}],
  ['tencent-Hy3', ['<｜hy_eos:opensource｜>'], {}],
  ['Apriel-1.6-15b-Thinker-fixed', ['<|end|>'], {}],
  ['MiniMax-M2', ['[e~['], { opensThinking: true, separator: '\n' }],
  ['Kimi-K3', ['<|end_of_msg|>'], { opensThinking: true }],
  ['microsoft-Phi-3.5-mini-instruct', ['<|end|>'], { toolResults: 'unsupported' }],
  ['CohereForAI-c4ai-command-r7b-12-2024-tool_use', ['<|END_OF_TURN_TOKEN|>'], {}],
  ['NousResearch-Hermes-3-Llama-3.1-8B-tool_use', ['<|im_end|>'], { needsTools: true }],
  ['meta-llama-Llama-3.1-8B-Instruct', ['<|eot_id|>'], { toolResults: 'single' }],
  ['mistralai-Mistral-Nemo-Instruct-2407', ['<|im_end|>'], { generationPrompt: '' }],
  ['google-gemma-2-2b-it', ['<end_of_turn>'], { takesSystem: false, offersTools: false }],
]

if (!hasTemplates) console.warn('skipped: no published chat templates beside this checkout')

describe.skipIf(!hasTemplates)('calibration', () => {
  it.each(expectations)('finds how turns of %s end', (name, stops, more) => {
    const { profile } = openTemplate(name)
    expect(profile.stops).toEqual(stops)
    expect(profile).toMatchObject(more)
    expect(profile.problems).toEqual([])
    expect(profile.borders.closing).toBe('control')
  })

  it('finds which endings open the next message', () => {
    expect(openTemplate('GLM-4.6').profile).toMatchObject({
      spoken: { stop: '<|user|>', isOpening: true },
      called: { stop: '<|observation|>', isOpening: true },
    })
    expect(openTemplate('Apertus-8B-Instruct').profile.spoken.isOpening).toBe(false)
    expect(openTemplate('tencent-Hy3').profile.spoken.isOpening).toBe(false)
  })

  it('finds a stop that history shows otherwise', () => {
    expect(openTemplate('openai-gpt-oss-120b').profile.spoken).toEqual({
      tail: '',
      stop: '<|end|>',
      sampledStop: '<|return|>',
      isOpening: false,
    })
  })

  it('finds a template that closes one call otherwise than several', () => {
    const { called } = openTemplate('deepseek-ai-DeepSeek-R1-Distill-Llama-8B').profile
    expect(called).toMatchObject({ stop: '<｜tool▁outputs▁begin｜>', isOpening: true })
    expect(called?.several).toMatchObject({ stop: '<｜end▁of▁sentence｜>', isOpening: false })
  })

  it('finds what the tokens between two turns depend on', () => {
    const needs = (name: string) => openTemplate(name).profile.bridgeNeeds
    expect(needs('Qwen-Qwen3-0.6B')).toEqual({ tools: false, history: false })
    expect(needs('mistralai-Mistral-Nemo-Instruct-2407')).toEqual({ tools: true, history: false })
    expect(needs('Cohere2MoE')).toEqual({ tools: false, history: true })
    expect(needs('Bielik-11B-v3.0-Instruct')).toEqual({ tools: false, history: true })
  })

  it('does not take an opening that is always written for the end of a turn', () => {
    const { profile } = openTemplate('CohereForAI-c4ai-command-r7b-12-2024-tool_use')
    expect(profile.generationPrompt).toBe(
      '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|><|END_THINKING|>',
    )
    expect(profile.spoken.tail).toBe('<|END_RESPONSE|>')
  })

  it('is not led astray by white space among the control tokens', () => {
    const source =
      '{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n\n{% endfor %}' +
      '{% if add_generation_prompt %}<|assistant|>{% endif %}'
    const tokenizer = openQwenTokenizer(['<|user|>', '<|assistant|>', '<|end|>', '\n\n'])
    const { profile } = openTemplate('own', { source, tokenizer })
    expect(profile).toMatchObject({ stops: ['<|end|>'], separator: '\n\n', problems: [] })
  })
})
