import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import {
  hasTemplates,
  openTemplate,
  pinnedClock,
  templateNames,
} from '../../../../../test/fixtures/chat-templates.ts'
import type { Message, ToolDefinition, ToolMessage } from '../../message.ts'
import type { BridgeRequest } from '../../renderer.ts'
import { bridgeIds } from '../bridge.ts'
import { probeTool } from '../calibration/probe.ts'
import type { ChatRequest } from '../chat.ts'
import { readModelFolder } from '../model-folder.ts'
import { randomConversation } from '../random-conversation.ts'
import { createRenderer, type ModelRenderer } from '../renderer.ts'
import { makeBridges } from './bridge-shape.ts'
import { makeOpenings } from './openings.ts'

const rounds = process.env.ESPALIER_SOAK ? 400 : 24

/** The same numbers in [0, 1) for the same seed. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** Contents that templates ask about, trim or escape, and that tokenizers could merge or recognise. */
const contents = [
  '',
  ' ',
  '\n\n',
  'It rains.',
  '  indented\n',
  '\ttab',
  '{"a": [1, 2.50]}',
  '"quoted" \\ and\nbroken',
  '</think>',
  '<think>no</think> yes',
  '<tool_response>\nwet\n</tool_response>',
  '<tool_response>',
  '|im_end|>',
  '<',
  '<|im_end',
  '<|im_end|>',
  '/think',
  '/no_think',
  'e\u0301 combining',
  '\u0301 first',
  '🎉',
  '\ud83c',
  '\udf89 lone',
  'lone \ud83c',
  'naïve 订单 1234567',
  "it's don't",
  '42',
  'x'.repeat(70),
]

const pickFrom =
  (random: () => number) =>
  <T>(items: readonly T[]): T =>
    items[Math.floor(random() * items.length)]!

/** A context with contents of all kinds; the lists of tools are few, as in a run. */
function drawOpening({ profile }: ModelRenderer, random: () => number): ChatRequest {
  const pick = pickFrom(random)
  const { opening, tools } = randomConversation({ profile, random, spelled: profile.stops })
  const messages = opening.map(
    (message): Message =>
      (random() < 0.9 ? { ...message, content: pick(contents) } : message) as Message,
  )
  return { messages, tools: tools.length > 0 ? offered : none, opensTurn: true }
}

const none: readonly ToolDefinition[] = []
const offered = [probeTool]

function drawRequest(renderer: ModelRenderer, random: () => number): BridgeRequest {
  const { profile, tokenizer } = renderer
  const spelled = profile.stops
  const { opening, tools, turns } = randomConversation({ profile, random, spelled })
  const turn = turns.at(-1)!
  const pick = pickFrom(random)
  const observed = turn.observed.map(
    (message): Message =>
      (random() < 0.8 ? { ...message, content: pick(contents) } : message) as Message,
  )
  if (random() < 0.15) observed.push({ role: 'user', content: pick(contents) })
  const end = pick(['', ...profile.stops])
  const path = tokenizer.encode(`words ${end}`)
  const messages = [...opening, turn.message, ...observed]
  return { path, turnStart: 0, messages, observed: observed.length, tools }
}

const opened = new Map<string, ModelRenderer>()

/** Model folders that every checkout has, with tokenizers of their own. */
const folders = ['tokenizer-qwen3', 'tokenizer-qwen2_5', 'tokenizer-llama3']
for (const name of folders) {
  const path = fileURLToPath(new URL(`../../../../../node_modules/@lenml/${name}`, import.meta.url))
  opened.set(name, createRenderer(await readModelFolder(path), { clock: pinnedClock }))
}

/** The renderer of such a folder or of a published template, opened once for all tests. */
function openOnce(name: string): ModelRenderer {
  const renderer = opened.get(name) ?? openTemplate(name)
  opened.set(name, renderer)
  return renderer
}

/** The ids of a bridge, or what the template says instead. */
function answerOf(bridge: () => Int32Array): readonly number[] | string {
  try {
    return [...bridge()]
  } catch (error) {
    return (error as Error).message
  }
}

if (!hasTemplates) console.warn('skipped: no published chat templates beside this checkout')

describe('openings filled into a shape', () => {
  it.each([...folders, ...templateNames()])('are token by token those of %s', name => {
    const renderer = openOnce(name)
    const { chat, tokenizer } = renderer
    const openings = makeOpenings(chat, tokenizer)
    const random = seeded(3)
    const drawn = Array.from({ length: rounds }, () => drawOpening(renderer, random))
    for (const request of [...drawn, ...drawn.toReversed()]) {
      const { messages, tools } = request
      const plainly = (): Int32Array => {
        const { text, foreign } = chat.render(request)
        return tokenizer.encode(text, { foreign })
      }
      expect(answerOf(() => openings(messages, tools))).toEqual(answerOf(plainly))
    }
  })

  it('need the template once for all tasks, though each has another question', () => {
    const { chat, tokenizer } = openOnce('tokenizer-qwen3')
    let renderings = 0
    const openings = makeOpenings(
      {
        ...chat,
        render: () => {
          throw new Error('the template was shown a question')
        },
        renderOutline: (...given) => {
          renderings++
          return chat.renderOutline(...given)
        },
      },
      tokenizer,
    )
    for (const content of ['Why?', 'How?', 'Who else? ', '🎉']) {
      const system: Message = { role: 'system', content: 'Be brief.' }
      openings([system, { role: 'user', content }], offered)
    }
    expect(renderings).toBe(1)
  })
})

describe('bridges filled into a shape', () => {
  it.each([...folders, ...templateNames()])('are token by token those of %s', name => {
    const renderer = openOnce(name)
    const bridge = makeBridges(renderer)
    const random = seeded(7)
    const drawn = Array.from({ length: rounds }, () => drawRequest(renderer, random))
    // Twice, so that every request meets the shapes that all others have left behind.
    for (const request of [...drawn, ...drawn]) {
      expect(answerOf(() => bridge(request))).toEqual(answerOf(() => bridgeIds(renderer, request)))
    }
  })

  const tools: readonly ToolDefinition[] = []

  function result(content: string): ToolMessage {
    return { role: 'tool', tool_call_id: 'c00000000', name: 'look', content }
  }

  /** How often the template was run for these contents, one after the other. */
  function renderingsOf(name: string, observed: readonly Message[]): number {
    const renderer = openOnce(name)
    let renderings = 0
    const bridge = makeBridges({
      ...renderer,
      chat: {
        ...renderer.chat,
        render: request => {
          renderings++
          return renderer.chat.render(request)
        },
        renderOutline: (request, hidden) => {
          renderings++
          return renderer.chat.renderOutline(request, hidden)
        },
      },
    })
    const path = renderer.tokenizer.encode('x')
    for (const message of observed) {
      bridge({ path, turnStart: 0, messages: [message], observed: 1, tools })
    }
    return renderings
  }

  it('run the template once for results of the same call', () => {
    const observed = ['It rains.', ' wet\n', '{"a": 1}', '🎉'].map(result)
    expect(renderingsOf('tokenizer-qwen3', observed)).toBe(1)
  })

  it
    .skipIf(!hasTemplates)
    .each([
      'Qwen-Qwen3-0.6B',
      'Qwen3.5-4B',
      'GLM-4.6',
      'openai-gpt-oss-120b',
      'meta-llama-Llama-3.1-8B-Instruct',
      'deepseek-ai-DeepSeek-V3.2',
      'mistralai-Mistral-Nemo-Instruct-2407',
    ])('run the template %s once for results of the same call', name => {
    const observed = ['It rains.', ' wet\n', '{"a": 1}', '🎉'].map(result)
    expect(renderingsOf(name, observed)).toBe(1)
  })

  it('run the template again where it asks about the content and gets another answer', () => {
    const users = ['Hi.', 'Ho.', '<tool_response>', 'Hi.'].map(
      (content): Message => ({ role: 'user', content }),
    )
    // A question is asked once per answer; the last but one spells a control token.
    expect(renderingsOf('tokenizer-qwen3', users.slice(0, 2))).toBe(1)
    expect(renderingsOf('tokenizer-qwen3', users)).toBe(2)
  })

  it('follow what a template does with some contents only', () => {
    const source =
      '{% for m in messages %}<|im_start|>{{ m.role }}\n' +
      "{% if m.content.startswith(' ') %}indented {% endif %}{% if not m.content %}nothing{% endif %}" +
      "{% if '/' in m.content %}{{ m.content.split('/') | last }}{% else %}{{ m.content | trim }}{% endif %}" +
      '<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}'
    const renderer = openTemplate('own', { source })
    const bridge = makeBridges(renderer)
    const path = renderer.tokenizer.encode('x')
    for (const content of [...contents, ...contents.toReversed()]) {
      const messages: Message[] = [{ role: 'user', content }]
      const request = { path, turnStart: 0, messages, observed: 1, tools }
      expect(bridge(request)).toEqual(bridgeIds(renderer, request))
    }
  })

  it('are not kept for another day where the template tells the day', () => {
    const source =
      "{% for m in messages %}<|im_start|>{{ m.role }} {{ strftime_now('%d') }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
      '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}'
    let day = 1
    const renderer = openTemplate('own', { source, clock: () => new Date(2026, 0, day) })
    const ask = (content: string): string => {
      const messages: Message[] = [{ role: 'user', content }]
      const path = renderer.tokenizer.encode('x')
      const { ids } = renderer.bridge({ path, turnStart: 0, messages, observed: 1, tools })
      return renderer.decode(ids)
    }
    expect([ask('a'), ask('b'), ask('c')].every(text => text.includes('user 01'))).toBe(true)
    day = 2
    expect(ask('d')).toContain('user 02')
  })
})
