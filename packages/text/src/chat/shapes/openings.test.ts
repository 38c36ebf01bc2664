import { describe, expect, it } from 'vitest'
import { openQwenTokenizer } from '../../../../../test/fixtures/chat-templates.ts'
import type { Message, ToolDefinition } from '../../message.ts'
import { plainDialect } from '../calibration/dialect.ts'
import { type Chat, compileChat } from '../chat.ts'
import { makeOpenings } from './openings.ts'

const template =
  "{% if dated %}{{ strftime_now('%d') }}{% endif %}{{ tools | tojson }}" +
  '{% for m in messages %}<|im_start|>{{ m | tojson }}<|im_end|>{% endfor %}'

const tool = (name: string): ToolDefinition => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: {} } },
})

/** A way to render contexts, with the number of times the template was run. */
function open({ dated = false, clock = () => new Date(2026, 0, 1) } = {}) {
  const tokenizer = openQwenTokenizer()
  const chat: Chat = compileChat({ template, tokenizer, config: {}, variables: { dated }, clock })(
    plainDialect,
  )
  const counted = { renderings: 0 }
  const render: Chat['render'] = request => {
    counted.renderings++
    return chat.render(request)
  }
  const openings = makeOpenings({ ...chat, render }, tokenizer)
  const plain = (messages: readonly Message[], tools: readonly ToolDefinition[]): Int32Array => {
    const { text, foreign } = chat.render({ messages, tools, opensTurn: true })
    return tokenizer.encode(text, { foreign })
  }
  return { openings, plain, counted }
}

const asked = (content: string): Message => ({ role: 'user', content })

describe('openings', () => {
  it('that are equal are rendered once', () => {
    const { openings, plain, counted } = open()
    const first = openings([asked('Why?')], [tool('look')])
    expect(openings([asked('Why?')], [tool('look')])).toBe(first)
    expect(counted.renderings).toBe(1)
    expect(first).toEqual(plain([asked('Why?')], [tool('look')]))
  })

  const long = 'word '.repeat(400)
  it.each<[string, readonly Message[], readonly ToolDefinition[]]>([
    ['in a word', [asked(`${long}a${long}`)], []],
    ['in the beginning', [asked(`b${long}${long}`)], []],
    ['in the end', [asked(`${long}${long}b`)], []],
    ['in a role', [{ role: 'system', content: `${long} ${long}` }], []],
    ['in the order of members', [{ content: `${long} ${long}`, role: 'user' }], []],
    ['in a member', [{ ...asked(`${long} ${long}`), name: 'x' } as Message], []],
    ['in parts', [{ role: 'user', content: [{ type: 'text', text: `${long} ${long}` }] }], []],
    ['in number', [asked(`${long} ${long}`), asked('')], []],
    ['in tools', [asked(`${long} ${long}`)], [tool('look')]],
    ['in the names of tools', [asked(`${long} ${long}`)], [tool('see')]],
  ])('that differ %s are told apart', (_, messages, tools) => {
    const { openings, plain } = open()
    openings([asked(`${long} ${long}`)], [])
    openings([asked(`${long}b${long}`)], [])
    openings([asked(`${long} ${long}`)], [tool('know')])
    expect(openings(messages, tools)).toEqual(plain(messages, tools))
    expect(openings(messages, tools)).toBe(openings(messages, tools))
  })

  it('do not follow a list that grows afterwards', () => {
    const { openings, plain } = open()
    const messages = [asked('Why?')]
    openings(messages, [])
    messages.push(asked('Really?'))
    expect(openings(messages, [])).toEqual(plain(messages, []))
  })

  it('are rendered again on another day where the template tells the day', () => {
    let day = 1
    const { openings, plain, counted } = open({ dated: true, clock: () => new Date(2026, 0, day) })
    openings([asked('Why?')], [])
    openings([asked('Why?')], [])
    expect(counted.renderings).toBe(1)
    day = 2
    expect(openings([asked('Why?')], [])).toEqual(plain([asked('Why?')], []))
  })

  it('are forgotten, the oldest first', () => {
    const { openings, counted } = open()
    for (let index = 0; index < 70; index++) openings([asked(`${index}`)], [])
    openings([asked('69')], [])
    expect(counted.renderings).toBe(70)
    openings([asked('0')], [])
    expect(counted.renderings).toBe(71)
  })
})
