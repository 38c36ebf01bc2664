import { describe, expect, it } from 'vitest'
import {
  hasTemplates,
  openTemplate,
  templateNames,
} from '../../../../test/fixtures/chat-templates.ts'
import type { Message, ToolDefinition } from '../message.ts'
import { type ControlToken, openTokenizer } from '../tokenizers/tokenizer.ts'
import type { ModelRenderer } from './renderer.ts'

/** How many control strings of a template are cut at every place. */
const most = process.env.ESPALIER_SOAK ? Number.POSITIVE_INFINITY : 2

/** Gives the words of a place in a conversation. */
type Words = (place: string) => string

interface Conversation {
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
}

const result = (words: Words) =>
  ({ role: 'tool', tool_call_id: 'c00000000', content: words('result') }) as const

function callOf(words: Words): Message {
  const input = JSON.stringify({ [words('key')]: words('value'), more: [words('item')] })
  const call = { name: words('called'), arguments: input }
  return {
    role: 'assistant',
    content: words('said'),
    tool_calls: [{ id: 'c00000000', type: 'function', function: call }],
  }
}

function toolOf(words: Words): ToolDefinition {
  const properties = { [words('property')]: { type: 'string', description: words('described') } }
  return {
    type: 'function',
    function: {
      name: words('tool'),
      description: words('description'),
      parameters: { type: 'object', properties, required: [] },
    },
  }
}

/** From everything that a conversation can hold to the little that every template takes. */
const kinds: readonly ((words: Words) => Conversation)[] = [
  words => ({
    messages: [
      { role: 'system', content: words('system') },
      {
        role: 'user',
        content: [
          { type: 'text', text: words('first') },
          { type: 'text', text: words('second') },
        ],
      },
      callOf(words),
      result(words),
      { role: 'user', content: words('asked') },
    ],
    tools: [toolOf(words)],
  }),
  words => ({
    messages: [
      { role: 'system', content: words('system') },
      { role: 'user', content: words('first') + words('second') },
      { role: 'assistant', content: words('said') },
      { role: 'user', content: words('asked') },
    ],
    tools: [],
  }),
  words => ({ messages: [{ role: 'user', content: words('asked') }], tools: [] }),
]

/** The control tokens of a conversation, in their order. */
function controlsIn({ tokenizer, render }: ModelRenderer, of: Conversation): readonly number[] {
  const controls = new Set(
    tokenizer.controls.filter(({ content }) => content.trim() !== '').map(({ id }) => id),
  )
  return [...render(of.messages, of.tools)].filter(id => controls.has(id))
}

const usual: Words = place => `qz${place}zq`

/** Words before and behind which a half of a control string stands. */
const between =
  (head: string, tail: string): Words =>
  place =>
    `${tail}qz${place}zq${head}`

/** What the policy said itself: control strings in there that are not special are its own. */
const own = ['said', 'called', 'key', 'value', 'item']

/** Text that ends in the one half and, where the next begins, goes on with the other. */
const cuts = ({ content: control, special }: ControlToken): readonly Words[] => {
  const places = [...control].slice(1).map((_, index) => [...control].slice(0, index + 1).join(''))
  return [
    ...places.map(head => between(head, control.slice(head.length))),
    ...places.map(
      (head): Words =>
        place =>
          place === 'second' ? control.slice(head.length) : `qz${place}zq${head}`,
    ),
    between(control, control),
  ].map(words => place => (own.includes(place) && !special ? usual : words)(place))
}

describe.skipIf(!hasTemplates)('[T6] H3: halves of control strings, wherever they meet', () => {
  let [tried, skipped] = [0, 0]

  it.each(templateNames())('stay text in %s', name => {
    const renderer = openTemplate(name)
    const kind = kinds.find(each => {
      try {
        return renderer.render(each(usual).messages, each(usual).tools).length > 0
      } catch {
        return false
      }
    })
    if (!kind) return
    const textOf = (words: Words): string =>
      renderer.chat.render({ ...kind(words), opensTurn: true }).text
    const plain = textOf(usual)
    const expected = controlsIn(renderer, kind(usual))
    const strings = renderer.tokenizer.controls.filter(
      ({ content }) => content.trim().length > 1 && plain.includes(content),
    )
    for (const control of strings.slice(0, most)) {
      for (const words of cuts(control)) {
        tried++
        const wanted = plain.replaceAll(/qz([a-z]+?)zq/g, (_, place: string) => words(place))
        // A template that looks at words, or writes them otherwise, makes another text of these.
        const isSame = (): boolean => {
          try {
            return textOf(words) === wanted
          } catch {
            return false
          }
        }
        if (!isSame()) skipped++
        else expect(controlsIn(renderer, kind(words)), control.content).toEqual(expected)
      }
    }
  })

  it('were compared in most cases', () => {
    expect(skipped / tried).toBeLessThan(0.4)
  })
})

describe('[T6] H3: control strings that arise from normalisation', () => {
  it.each([
    ['NFKC', '＜end＞'],
    ['Lowercase', '<END>'],
  ])('stay text after %s', (type, text) => {
    const vocab = Object.fromEntries([...'<>ends a'].map((letter, id) => [letter, id]))
    const flags = { special: true, lstrip: false, rstrip: false, single_word: false }
    const tokenizer = openTokenizer({
      tokenizer: {
        normalizer: { type },
        model: { type: 'BPE', vocab, merges: [] },
        added_tokens: [{ id: 20, content: '<end>', normalized: true, ...flags }],
      },
    })
    const end = tokenizer.idOf('<end>')!
    expect([...tokenizer.encode(text)]).toEqual([end])
    expect([...tokenizer.encode(text, { foreign: [[0, text.length]] })]).not.toContain(end)
    // Half of it from outside is enough.
    expect([...tokenizer.encode(text, { foreign: [[0, 1]] })]).not.toContain(end)
  })
})
