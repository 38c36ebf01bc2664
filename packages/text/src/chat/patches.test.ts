import { describe, expect, it } from 'vitest'
import {
  hasTemplates,
  openTemplate,
  readTemplate,
} from '../../../../test/fixtures/chat-templates.ts'
import type { AssistantMessage, Message } from '../message.ts'
import { patchTemplate, templatePatches } from './patches.ts'
import type { ModelRenderer } from './renderer.ts'

const asked: Message = { role: 'user', content: 'Why?' }
const result: Message = { role: 'tool', tool_call_id: 'c00000000', name: 'look', content: 'ok' }

const opened = new Map<string, ModelRenderer>()

function openOnce(name: string, patch: boolean): ModelRenderer {
  const key = `${name} ${patch}`
  const renderer = opened.get(key) ?? openTemplate(name, { patch })
  opened.set(key, renderer)
  return renderer
}

/** A calling turn with these words, as history shows it before a tool result. */
function shown(name: string, content: string, patch: boolean): string {
  const { chat } = openOnce(name, patch)
  const turn: AssistantMessage = {
    role: 'assistant',
    content,
    tool_calls: [
      { id: 'c00000000', type: 'function', function: { name: 'look', arguments: '{}' } },
    ],
  }
  const { text } = chat.render({ messages: [asked, turn, result], tools: [], opensTurn: true })
  const start = text.indexOf('<|im_start|>assistant\n') + '<|im_start|>assistant\n'.length
  return text.slice(start, text.indexOf('<tool_call>', start)).trimEnd()
}

if (!hasTemplates) console.warn('skipped: no published chat templates beside this checkout')

describe.skipIf(!hasTemplates)('template patches', () => {
  it.each(['Qwen-Qwen3-0.6B', 'Qwen3.5-4B'])(
    '%s as published takes words before an orphan </think> for thoughts, and loses some',
    name => {
      expect(shown(name, 'a</think>b</think>c', false)).toBe('<think>\na\n</think>\n\nc')
    },
  )

  it('mends Qwen3: an orphan </think> stays where it was said', () => {
    const content = 'a</think>b</think>c'
    expect(shown('Qwen-Qwen3-0.6B', content, true)).toBe(content)
    expect(shown('Qwen3.5-4B', content, true)).toBe(`<think>\n\n</think>\n\n${content}`)
  })

  it.each(['Qwen-Qwen3-0.6B', 'Qwen3.5-4B'])('%s, mended, still splits off real thinking', name => {
    const content = '<think>\na\n</think>\n\nb</think>c'
    expect(shown(name, content, true)).toBe('<think>\na\n</think>\n\nb</think>c')
    expect(shown(name, content, false)).toBe('<think>\na\n</think>\n\nc')
  })

  it.each(['Qwen-Qwen3-0.6B', 'Qwen3.5-4B'])('%s, mended, shows all else as before', name => {
    for (const content of ['', 'plain words', '<think>\nwhy\n</think>\n\nwords', 'a < b']) {
      expect(shown(name, content, true)).toBe(shown(name, content, false))
    }
  })

  it.each([
    ['GLM-4.6', 'qwen3.5-orphan-think'],
    ['MiniMax-M2', 'minimax-m2-orphan-think'],
    ['StepFun3.5-Flash', 'qwen3.5-orphan-think'],
    ['openbmb-MiniCPM5-1B', 'qwen3.5-orphan-think'],
  ])('mends %s, which has the same defect', (name, patch) => {
    const words = { role: 'assistant', content: 'a</think>b</think>c' } as const
    const request = { messages: [asked, words, asked], tools: [], opensTurn: true }
    expect(openOnce(name, true).patches.map(each => each.name)).toEqual([patch])
    expect(openOnce(name, true).chat.render(request).text).toContain(words.content)
    expect(openOnce(name, false).chat.render(request).text).not.toContain(words.content)
  })

  it('is applied once, says which patch it was and why, and leaves other templates alone', () => {
    const once = patchTemplate(readTemplate('Qwen-Qwen3-0.6B'))
    expect(once.applied.map(({ name }) => name)).toEqual(['qwen3-orphan-think'])
    expect(once.applied[0]?.reason).toContain('</think>')
    expect(patchTemplate(once.source)).toEqual({ source: once.source, applied: [] })
    const other = readTemplate('Qwen-Qwen2.5-7B-Instruct')
    expect(patchTemplate(other)).toEqual({ source: other, applied: [] })
  })

  it('can be turned off', () => {
    expect(openOnce('Qwen-Qwen3-0.6B', true).patches).toHaveLength(1)
    expect(openOnce('Qwen-Qwen3-0.6B', false).patches).toEqual([])
  })
})

describe('patchTemplate', () => {
  it('replaces only the first occurrence of a passage', () => {
    const patch = { name: 'once', reason: 'A test.', find: ['a', 'b$'], replace: ['$&'] }
    expect(patchTemplate('a\n  b$ a\nb$', [patch])).toEqual({
      source: '$& a\nb$',
      applied: [patch],
    })
  })

  it('has a reason for every patch', () => {
    for (const { reason, find, replace } of templatePatches) {
      expect(reason.length).toBeGreaterThan(40)
      expect(replace).not.toEqual(find)
    }
  })
})
