import type { Message, ToolDefinition } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { conversationRow } from './supervised.ts'
import { rendererFor } from './teach.ts'
import { controlTokens } from './template.ts'
import { buildVocabulary, isByteToken, tokenizerFiles } from './vocabulary.ts'

const tools: readonly ToolDefinition[] = [
  {
    type: 'function',
    function: {
      name: 'sell',
      parameters: {
        type: 'object',
        properties: { pears: { type: 'integer' }, to: { type: 'string' } },
      },
    },
  },
  { type: 'function', function: { name: 'count', parameters: { type: 'object' } } },
]

const call = (name: string, input: unknown, id: string): Message => ({
  role: 'assistant',
  content: '',
  tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(input) } }],
})

const messages: readonly Message[] = [
  { role: 'user', content: 'sell 12 pears to "Ann"' },
  call('count', {}, 'a'),
  { role: 'tool', tool_call_id: 'a', content: '30' },
  call('sell', { pears: 12, to: 'Ann' }, 'b'),
  { role: 'tool', tool_call_id: 'b', content: '18' },
  { role: 'assistant', content: 'done' },
  { role: 'user', content: 'thanks' },
]

function rendererOf(texts: readonly string[]) {
  return rendererFor('test', tokenizerFiles(buildVocabulary(texts)))
}

function trained() {
  const empty = rendererOf([])
  return rendererOf([empty.chat.render({ messages, tools, opensTurn: false }).text])
}

describe('the vocabulary of an embedded model', () => {
  it('has whole words for what it was made from and bytes for everything else', () => {
    const { tokenizer } = trained()
    const known = [...tokenizer.encode('sell 12 pears')].map(id => tokenizer.tokenOf(id))
    expect(known).toEqual(['sell', ' ', '12', ' pears'])
    for (const text of ['größer', 'a\tb\r\n', '日本語 🙂', '<|end|>', '<0x41>', '']) {
      const ids = tokenizer.encodeOrdinary(text)
      expect(tokenizer.decode(ids)).toBe(text)
    }
    const strange = tokenizer.encode('zebra')
    expect([...strange].every(id => isByteToken(tokenizer.tokenOf(id)))).toBe(true)
  })

  it('orders words by how often they occur, then by their letters', () => {
    const { tokens } = buildVocabulary(['b a a c', 'c a'])
    expect(tokens.slice(controlTokens.length + 256)).toEqual([' a', ' c', 'b', 'c'])
    expect(buildVocabulary(['b a a c'], { times: 2 }).tokens.slice(-1)).toEqual([' a'])
    expect(buildVocabulary(['b a a c'], { words: 0 }).tokens.length).toBe(
      controlTokens.length + 256,
    )
  })

  it('writes a number as the same token in a text and in a call', () => {
    const { tokenizer, chat } = trained()
    const { text } = chat.render({ messages, tools, opensTurn: false })
    const twelve = tokenizer.idOf('12')
    expect([...tokenizer.encode(text)].filter(id => id === twelve).length).toBe(2)
  })
})

describe('the chat template of an embedded model', () => {
  it('offers tools in a few tokens and writes calls as LFM2 does', () => {
    const { text } = trained().chat.render({ messages, tools, opensTurn: true })
    expect(text).toBe(
      '<|system|>sell:pears,to count<|end|><|user|>sell 12 pears to "Ann"<|end|>' +
        '<|assistant|><|tool_call_start|>[count()]<|tool_call_end|><|end|><|tool|>30<|end|>' +
        '<|assistant|><|tool_call_start|>[sell(pears=12,to="Ann")]<|tool_call_end|><|end|>' +
        '<|tool|>18<|end|><|assistant|>done<|end|><|user|>thanks<|end|><|assistant|>',
    )
  })

  it('writes system messages, parts and several calls in one turn', () => {
    const first = call('count', {}, 'a') as Extract<Message, { role: 'assistant' }>
    const second = call('sell', { pears: 1 }, 'b') as Extract<Message, { role: 'assistant' }>
    const { text } = trained().chat.render({
      messages: [
        { role: 'system', content: 'be kind' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
        { ...first, tool_calls: [...first.tool_calls!, ...second.tool_calls!] },
        { role: 'tool', tool_call_id: 'a', content: '1' },
        { role: 'tool', tool_call_id: 'b', content: '2' },
        { role: 'system', content: 'now' },
      ],
      tools,
      opensTurn: false,
    })
    expect(text).toBe(
      '<|system|>be kind\nsell:pears,to count<|end|><|user|>ab<|end|>' +
        '<|assistant|><|tool_call_start|>[count(),sell(pears=1)]<|tool_call_end|><|end|>' +
        '<|tool|>1<|end|><|tool|>2<|end|><|system|>now<|end|>',
    )
  })

  it('is read back by the parser that its own text calls for', () => {
    const renderer = trained()
    expect(renderer.formats.tools).toBe('lfm2')
    expect(renderer.stopIds).toEqual([renderer.tokenizer.idOf('<|end|>')])
    expect(renderer.profile.problems).toEqual([])
    const { message } = renderer.parse(renderer.encodeReply(messages[3] as never, tools), tools, 0)
    expect(message.tool_calls?.[0]?.function.name).toBe('sell')
    expect(JSON.parse(message.tool_calls![0]!.function.arguments)).toEqual({ pears: 12, to: 'Ann' })
  })
})

describe('a demonstration as a row', () => {
  it('has the tokens of the rendered conversation, the assistant’s to be learned', () => {
    const renderer = trained()
    const { ids, mask } = conversationRow(renderer, { messages, tools })
    const whole = renderer.tokenizer.encode(
      renderer.chat.render({ messages: messages.slice(0, -1), tools, opensTurn: false }).text,
    )
    expect([...ids]).toEqual([...whole])
    const learned = renderer.tokenizer.decode(ids.filter((_, at) => mask[at] === 1))
    expect(learned).toBe(
      '<|tool_call_start|>[count()]<|tool_call_end|><|end|>' +
        '<|tool_call_start|>[sell(pears=12,to="Ann")]<|tool_call_end|><|end|>done<|end|>',
    )
  })

  it('says what is missing', () => {
    const renderer = trained()
    const row = (some: readonly Message[]) => () =>
      conversationRow(renderer, { messages: some, tools })
    expect(row(messages.slice(0, 1))).toThrow('an answer by the assistant')
    expect(row([messages[5]!])).toThrow('a message to answer')
    expect(row([messages[0]!, messages[5]!, messages[5]!])).toThrow('must answer every turn')
  })
})
