import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { detectFormats } from './detect.ts'

const folder = '../shared/data/chat-templates'
if (!existsSync(folder)) console.warn(`skipped: no chat templates at ${folder}`)

describe('detectFormats', () => {
  it.skipIf(!existsSync(folder)).each([
    ['Qwen-Qwen2.5-7B-Instruct', 'qwen25', undefined],
    ['Qwen-Qwen3-0.6B', 'qwen25', 'qwen3'],
    ['Qwen3-Coder', 'qwen3_coder', undefined],
    ['NousResearch-Hermes-3-Llama-3.1-8B-tool_use', 'hermes', undefined],
    ['meta-llama-Llama-3.1-8B-Instruct', 'llama3', undefined],
    ['GLM-4.6', 'glm45', 'glm45'],
    ['GLM-4.7-Flash', 'glm47', 'glm45'],
    ['poolside-Laguna-XS.2', 'poolside_v1', 'qwen3'],
    ['deepseek-ai-DeepSeek-V3.1', 'deepseekv31', 'deepseek-v3'],
    ['deepseek-ai-DeepSeek-V3.2', 'deepseekv32', 'deepseek-v4'],
    ['deepseek-ai-DeepSeek-V4', 'deepseekv4', 'deepseek-v4'],
    ['llama-cpp-deepseek-r1', 'deepseekv3', 'deepseek-r1'],
    ['Mistral-Small-3.2-24B-Instruct-2506', 'mistral_compact', undefined],
    ['mistralai-Mistral-Nemo-Instruct-2407', 'mistral', undefined],
    ['mistralai-Ministral-3-14B-Reasoning-2512', 'mistral_compact', 'mistral'],
    ['openai-gpt-oss-120b', 'gpt-oss', 'gpt-oss'],
    ['tencent-Hy3', 'hunyuan', 'hunyuan'],
    ['Kimi-K2-Thinking', 'kimi_k2', 'kimi_k2'],
    ['Kimi-K3', 'kimi_k3', 'kimi_k3'],
    ['MiniMax-M2', 'minimax-m2', 'minimax'],
    ['MiniMax-M3', 'minimax-m3', 'minimax-m3'],
    ['google-gemma-4-31B-it', 'gemma4', 'gemma4'],
    ['Apertus-8B-Instruct', 'apertus2509', 'apertus2509'],
    ['openbmb-MiniCPM5-1B', 'minicpm5', 'qwen3'],
    ['muse-glimmer', 'muse', undefined],
    // Ways of calling tools that no format here reads.
    ['meetkai-functionary-medium-v3.1', undefined, undefined],
    ['ByteDance-Seed-OSS', undefined, undefined],
    ['google-gemma-2-2b-it', undefined, undefined],
  ])('knows %s', (name, tools, reasoning) => {
    const template = readFileSync(`${folder}/${name}.jinja`, 'utf8')
    // A foreign vocabulary must not mislead: Qwen3's own control strings.
    const controls = ['<|im_start|>', '<|im_end|>', '<tool_call>', '</tool_call>', '<think>']
    expect(detectFormats(template, controls)).toEqual({ tools, reasoning })
  })

  it('asks the vocabulary where a template only offers tools', () => {
    const template = '{{ tools | tojson }}{% for message in messages %}…{% endfor %}'
    expect(detectFormats(template, ['<|tool_call_start|>']).tools).toBe('lfm2')
    expect(detectFormats(template, ['<tool_call>']).tools).toBeUndefined()
    expect(detectFormats('{{ messages }}', ['<|tool_call_start|>']).tools).toBeUndefined()
  })
})
