import { describe, expect, it } from 'vitest'
import { random, seedOf } from '../../../../src/base/math/random.ts'
import { hasTemplates, openTemplate } from '../../../../test/fixtures/chat-templates.ts'
import { randomConversation } from './random-conversation.ts'
import { readBack } from './read-back.ts'

/** Templates whose formats are known and whose turns say all that their messages do. */
const readable = [
  'Apertus-8B-Instruct',
  'Bielik-11B-v3.0-Instruct',
  'Cohere2MoE',
  'GLM-4.6',
  'GLM-4.7-Flash',
  'Kimi-K3',
  'MiMo-VL',
  'MiniMax-M2',
  'MiniMax-M3',
  'NVIDIA-Nemotron-3-Nano-30B-A3B-BF16',
  'NousResearch-Hermes-3-Llama-3.1-8B-tool_use',
  'Qwen-Qwen2.5-7B-Instruct',
  'Qwen-Qwen3-0.6B',
  'Qwen3-Coder',
  'Qwen3.5-4B',
  'StepFun3.5-Flash',
  'deepseek-ai-DeepSeek-V3.1',
  'deepseek-ai-DeepSeek-V4',
  'ibm-granite-granite-4.0',
  'meta-llama-Llama-3.1-8B-Instruct',
  'mistralai-Ministral-3-14B-Reasoning-2512',
  'moonshotai-Kimi-K2',
  'openbmb-MiniCPM5-1B',
  'poolside-Laguna-S-2.1',
  'tencent-Hy3',
]

if (!hasTemplates) console.warn('skipped: no published chat templates beside this checkout')

describe.skipIf(!hasTemplates)('readBack', () => {
  it.each(readable)('reads what %s writes: its calls, words and thoughts', name => {
    const renderer = openTemplate(name)
    const { profile } = renderer
    const findings = Array.from({ length: 8 }, (_, index) =>
      readBack(
        renderer,
        randomConversation({ profile, random: random(seedOf(name, index)), spelled: [] }),
      ),
    ).flat()
    expect(findings.filter(({ kind }) => kind === 'misread')).toEqual([])
    expect(findings.filter(({ kind }) => kind === 'read').length).toBeGreaterThan(0)
  })
})
