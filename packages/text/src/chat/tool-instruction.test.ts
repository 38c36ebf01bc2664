import { describe, expect, it } from 'vitest'
import { hasTemplates, openTemplate } from '../../../../test/fixtures/chat-templates.ts'
import type { Message } from '../message.ts'
import { probeTool } from './calibration/probe.ts'
import { replaceToolInstruction } from './tool-instruction.ts'

const asked: readonly Message[] = [{ role: 'user', content: 'hi' }]
const sentence = 'You may call one or more functions to assist with the user query.'

describe('replaceToolInstruction', () => {
  it('replaces a sentence in the template’s own text', () => {
    const instruction = { find: 'Use tools.', replace: 'Use "tools"\nor not.' }
    expect(replaceToolInstruction('{% if tools %}Use tools.{% endif %}', instruction)).toBe(
      '{% if tools %}Use "tools"\nor not.{% endif %}',
    )
  })

  it('replaces a sentence inside a string of the template, with what strings must escape', () => {
    const instruction = { find: 'Use tools.\nNow.', replace: 'Don\'t "use"\ntools\\.' }
    expect(replaceToolInstruction("{{ 'Use tools.\\nNow.' }}", instruction)).toBe(
      "{{ 'Don\\'t \\\"use\\\"\\ntools\\\\.' }}",
    )
  })

  it('refuses a sentence that is not there', () => {
    const instruction = { find: 'Use tools.', replace: '' }
    expect(() => replaceToolInstruction('{{ messages }}', instruction)).toThrow(
      'the chat template has no sentence "Use tools."',
    )
  })
})

describe.skipIf(!hasTemplates)('the tool instruction of published templates', () => {
  it.each(['Qwen-Qwen2.5-7B-Instruct', 'Qwen-Qwen3-0.6B', 'MiMo-VL'])(
    'is replaced as the tau-bench agent does it in %s',
    name => {
      const replace = `${sentence} Call at most one at a time: "it's" the rule.`
      const usual = openTemplate(name)
      const changed = openTemplate(name, { toolInstruction: { find: sentence, replace } })
      const request = { messages: asked, tools: [probeTool], opensTurn: true }
      expect(changed.chat.render(request).text).toBe(
        usual.chat.render(request).text.replace(sentence, replace),
      )
      expect(changed.profile).toEqual(usual.profile)
    },
  )

  it('is refused where the template offers tools in other words', () => {
    const toolInstruction = { find: sentence, replace: '' }
    expect(() => openTemplate('Qwen3-Coder', { toolInstruction })).toThrow(
      'the chat template has no sentence',
    )
  })
})
