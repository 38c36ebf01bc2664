import { describe, expect, it } from 'vitest'
import { hasTemplates, openTemplate } from '../../../../test/fixtures/chat-templates.ts'
import type { Message, ToolDefinition, ToolMessage } from '../message.ts'
import { concat } from './bridge.ts'
import type { ModelRenderer, RendererOptions } from './renderer.ts'

const weather: ToolDefinition = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather of a town.',
    parameters: {
      type: 'object',
      properties: { town: { type: 'string', description: 'Its name.' } },
      required: ['town'],
    },
  },
}
const tools = [weather]
const asked: Message = { role: 'user', content: 'Is it raining?' }

const opened = new Map<string, ModelRenderer>()

function open(name: string, options: Partial<RendererOptions> = {}): ModelRenderer {
  const key = name + JSON.stringify(options)
  const renderer = opened.get(key) ?? openTemplate(name, options)
  opened.set(key, renderer)
  return renderer
}

const openQwen = (more: Partial<RendererOptions> = {}) =>
  open('Qwen-Qwen3-0.6B', { toolFormat: 'qwen25', reasoningFormat: 'qwen3', ...more })

function result(content: string, index = 0): ToolMessage {
  return { role: 'tool', tool_call_id: `c0000000${index}`, name: 'weather', content }
}

/** A path of an opening and a sampled text, and what follows it once something is observed. */
function follow(renderer: ModelRenderer, sampled: string, observed: readonly Message[]) {
  const opening = renderer.render([asked], tools)
  const turn = renderer.tokenizer.encode(sampled)
  const path = concat(opening, turn)
  const { message } = renderer.parse(turn, tools, 0)
  const messages = [asked, message, ...observed]
  const request = { path, turnStart: opening.length, messages, observed: observed.length, tools }
  const bridge = renderer.bridge(request)
  return { path, messages, bridge, text: renderer.decode(bridge.ids) }
}

const call = '<tool_call>\n{"name": "weather", "arguments": {"town": "Bonn"}}\n</tool_call>'

if (!hasTemplates) console.warn('skipped: no published chat templates beside this checkout')

describe.skipIf(!hasTemplates)('bridges', () => {
  it('keep the separator behind a stop token that the policy sampled', () => {
    expect(follow(openQwen(), `${call}<|im_end|>`, [result('wet')]).text).toBe(
      '\n<|im_start|>user\n<tool_response>\nwet\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
    )
  })

  it('[O2] close a turn that was cut by length or by a stop string', () => {
    const cut = follow(openQwen(), '<tool_call>\n{"name": "wea', [{ role: 'user', content: 'on' }])
    expect(cut.text).toMatch(/^<\|im_end\|>\n<\|im_start\|>user\non<\|im_end\|>/)
    expect(follow(openQwen(), call, [result('wet')]).text).toMatch(/^<\|im_end\|>\n<\|im_start\|>/)
  })

  it('take another end of the folder for the end of the turn, without a second one', () => {
    const { text } = follow(openQwen(), 'No.<|im_end|>', [asked])
    expect(text).toBe('\n<|im_start|>user\nIs it raining?<|im_end|>\n<|im_start|>assistant\n')
  })

  it('never write the stop token of GLM twice, which opens the next message', () => {
    const renderer = open('GLM-4.6')
    const calls = '\n<think></think>\n<tool_call>weather\n</tool_call>'
    const sampled = follow(renderer, `${calls}<|observation|>`, [result('wet')])
    expect(sampled.text).toBe('\n<tool_response>\nwet\n</tool_response><|assistant|>')
    const hidden = follow(renderer, calls, [result('wet')])
    expect(hidden.text).toBe('<|observation|>\n<tool_response>\nwet\n</tool_response><|assistant|>')
  })

  it('open the message that came, where GLM’s policy announced another', () => {
    const { text } = follow(open('GLM-4.6'), 'No.<|user|>', [result('wet')])
    expect(text).toMatch(/^<\|observation\|>\n<tool_response>\nwet/)
  })

  it('group parallel results as the template groups them', () => {
    const results = [result('wet', 0), result('dry', 1)]
    expect(follow(openQwen(), `${call}\n${call}<|im_end|>`, results).text).toContain(
      '<tool_response>\nwet\n</tool_response>\n<tool_response>\ndry\n</tool_response><|im_end|>',
    )
    expect(follow(open('GLM-4.6'), 'x<|observation|>', results).text).toBe(
      '\n<tool_response>\nwet\n</tool_response>\n<tool_response>\ndry\n</tool_response><|assistant|>',
    )
  })

  it('name the calls by their ids where a template writes them behind the arguments', () => {
    const nemo = open('mistralai-Mistral-Nemo-Instruct-2407')
    expect(nemo.profile.called?.tail).toContain('"id": ')
    const { text } = follow(nemo, '[TOOL_CALLS][]<|im_end|>', [result('1'), result('2', 1)])
    expect(text).toBe(
      '[TOOL_RESULTS]{"content": 1, "call_id": "c00000000"}[/TOOL_RESULTS]' +
        '[TOOL_RESULTS]{"content": 2, "call_id": "c00000001"}[/TOOL_RESULTS]',
    )
  })

  it('say why where a template refuses the results of several calls', () => {
    const llama = open('meta-llama-Llama-3.1-8B-Instruct')
    expect(llama.profile.toolResults).toBe('single')
    expect(() => follow(llama, 'x<|eot_id|>', [result('wet'), result('dry', 1)])).toThrow(
      'This model only supports single tool-calls at once!',
    )
  })

  it('say why where a template leaves tool results out', () => {
    const phi = open('microsoft-Phi-3.5-mini-instruct')
    expect(() => follow(phi, 'x<|end|>', [result('wet')])).toThrow('does not show tool results')
  })

  it('answer a malformed call of gpt-oss, whose template wants a call before a result', () => {
    const renderer = open('openai-gpt-oss-120b')
    const { text } = follow(renderer, '<|channel|>commentary to=functions.weather<|call|>', [
      result('no arguments'),
    ])
    expect(text).toBe(
      '<|start|>functions.weather to=assistant<|channel|>commentary<|message|>"no arguments"<|end|>' +
        '<|start|>assistant',
    )
  })

  it('cost the same behind a long history, and do not look at it', () => {
    const renderer = openQwen()
    const short = follow(renderer, `${call}<|im_end|>`, [result('wet')])
    const history = Array.from({ length: 40 }, (): Message[] => [
      asked,
      { role: 'assistant', content: '<|im_end|>' },
    ]).flat()
    const messages = [...history, ...short.messages]
    const request = { path: short.path, turnStart: 0, messages, observed: 1, tools }
    expect(renderer.bridge(request).ids).toEqual(short.bridge.ids)
  })

  it('number results over the whole conversation where the template does', () => {
    const renderer = open('Cohere2MoE')
    expect(renderer.profile.bridgeNeeds.history).toBe(true)
    const calling = (id: string): Message => ({
      role: 'assistant',
      content: '',
      tool_calls: [{ id, type: 'function', function: { name: 'weather', arguments: '{}' } }],
    })
    const first = [asked, calling('c00000000'), result('wet')]
    const messages = [...first, calling('c00000001'), result('dry', 1)]
    const path = renderer.tokenizer.encode('x<|END_OF_TURN_TOKEN|>')
    const { ids } = renderer.bridge({ path, turnStart: 0, messages, observed: 1, tools })
    expect(renderer.decode(ids)).toContain('"tool_call_id": "1"')
  })
})

describe.skipIf(!hasTemplates)('faithful histories', () => {
  const thinking = '<think>\nLook it up.\n</think>\n\n'

  it('[T4] fork where a new question removes thinking, and say whose', () => {
    const renderer = openQwen().withHistory('faithful')
    const { bridge, path } = follow(renderer, `${thinking}No.<|im_end|>`, [asked])
    if (bridge.kind !== 'rewrites') throw new Error('nothing was rewritten')
    expect(bridge.reason).toMatch(/^the template removed the thinking of turn 1: "<think>\\nLook/)
    expect(renderer.decode(path.subarray(bridge.keep)).startsWith('<think>')).toBe(true)
    expect(renderer.decode(bridge.ids).startsWith('No.<|im_end|>\n')).toBe(true)
  })

  it('extend where nothing changes, though the tokens were not the canonical ones', () => {
    const renderer = openQwen().withHistory('faithful')
    const letters = [...`${thinking}${call}`].flatMap(letter => [
      ...renderer.tokenizer.encodeOrdinary(letter),
    ])
    const stop = renderer.tokenizer.idOf('<|im_end|>')!
    const opening = renderer.render([asked], tools)
    const path = concat(opening, Int32Array.from([...letters, stop]))
    const { message } = renderer.parse(renderer.tokenizer.encode(`${thinking}${call}`), tools, 0)
    const messages = [asked, message, result('wet')]
    const request = { path, turnStart: opening.length, messages, observed: 1, tools }
    const bridge = renderer.bridge(request)
    expect(bridge.kind).toBe('extends')
    expect(bridge.ids).toEqual(openQwen().bridge(request).ids)
  })

  it('fork where the template closes a turn otherwise than the policy did', () => {
    const renderer = open('openai-gpt-oss-120b').withHistory('faithful')
    const opening = renderer.render([asked], [])
    const turn = '<|channel|>final<|message|>No.<|return|>'
    const path = concat(opening, renderer.tokenizer.encode(turn))
    const messages: Message[] = [asked, { role: 'assistant', content: 'No.' }, asked]
    const request = { path, turnStart: opening.length, messages, observed: 1, tools: [] }
    const bridge = renderer.bridge(request)
    expect(bridge).toMatchObject({ kind: 'rewrites', keep: path.length - 1 })
    expect(bridge.kind === 'rewrites' && bridge.reason).toContain('"<|return|>" became "<|end|>')
    expect(renderer.withHistory('preserve').bridge(request).kind).toBe('extends')
  })

  it('show a result that answers a malformed call, though the template wants a call', () => {
    const renderer = open('openai-gpt-oss-120b').withHistory('faithful')
    const sampled = '<|channel|>final<|message|>weather(<|return|>'
    const { bridge } = follow(renderer, sampled, [result('not a call')])
    expect(renderer.decode(bridge.ids)).toContain('"not a call"')
  })
})

describe.skipIf(!hasTemplates)('replies', () => {
  const thought = '<think>\nLook it up.\n</think>\n\n'

  it('are read alike from canonical tokens and from others', () => {
    const renderer = openQwen()
    const canonical = renderer.tokenizer.encode(`${thought}Wait.\n${call}<|im_end|>`)
    const [open, close, begin, end, stop] = [
      '<think>',
      '</think>',
      '<tool_call>',
      '</tool_call>',
      '<|im_end|>',
    ].map(control => renderer.tokenizer.idOf(control)!)
    const spelled = (text: string): number[] =>
      [...text].flatMap(letter => [...renderer.tokenizer.encodeOrdinary(letter)])
    const others = Int32Array.from([
      ...[open!, ...spelled('\nLook it up.\n'), close!, ...spelled('\n\nWait.\n'), begin!],
      ...spelled('\n{"name": "weather", "arguments": {"town": "Bonn"}}\n'),
      ...[end!, stop!],
    ])
    expect(others.length).toBeGreaterThan(canonical.length)
    expect(renderer.parse(others, tools, 3)).toEqual(renderer.parse(canonical, tools, 3))
    expect(renderer.parse(canonical, tools, 3)).toMatchObject({
      message: { content: 'Wait.', tool_calls: [{ id: 'c00003000' }] },
      calls: [{ kind: 'parsed', name: 'weather', arguments: '{"town": "Bonn"}' }],
    })
  })

  it('have a call where its marker is spelled in letters, as for servers that parse text', () => {
    const renderer = openQwen()
    const ids = renderer.tokenizer.encodeOrdinary(call)
    expect(renderer.parse(ids, tools, 0).calls).toHaveLength(1)
  })

  it('have no such call where only control tokens are markers', () => {
    const renderer = openQwen({ markers: 'tokens' })
    const ids = renderer.tokenizer.encodeOrdinary(call)
    expect(renderer.parse(ids, tools, 0)).toEqual({
      message: { role: 'assistant', content: call },
      calls: [],
    })
  })

  it('begin in thought where the prompt opened the block, and only there', () => {
    const formats = { toolFormat: 'qwen3_coder', reasoningFormat: 'qwen3' } as const
    const renderer = open('Qwen3.5-4B', formats)
    expect(renderer.profile.opensThinking).toBe(true)
    const ids = renderer.tokenizer.encode('Look it up.\n</think>\n\nYes.<|im_end|>')
    expect(renderer.parse(ids, [], 0).message.content).toBe('Yes.')
    expect(renderer.parse(ids, [], 0).message.reasoning_content).toBe('Look it up.')
    const plain = open('Qwen3.5-4B', { ...formats, templateVariables: { enable_thinking: false } })
    expect(plain.profile.opensThinking).toBe(false)
    expect(plain.profile.generationPrompt).toBe('<|im_start|>assistant\n<think>\n\n</think>\n\n')
    const said = plain.tokenizer.encode('Yes.<|im_end|>')
    expect(plain.parse(said, [], 0).message).toEqual({ role: 'assistant', content: 'Yes.' })
  })

  it('know that a prompt opens a block though history never shows one', () => {
    const name = 'deepseek-ai-DeepSeek-R1-Distill-Llama-8B'
    expect(open(name, { reasoningFormat: 'deepseek-r1' }).profile.opensThinking).toBe(true)
    expect(open('GLM-4.7-Flash').profile.opensThinking).toBe(true)
    expect(open('deepseek-ai-DeepSeek-V3.1').profile.opensThinking).toBe(false)
  })

  it('keep a closing marker that is also the stop', () => {
    const renderer = open('Apertus-8B-Instruct', { toolFormat: 'apertus2509' })
    const ids = renderer.tokenizer.encode(
      '<|tools_prefix|>[{"weather": {"town": "Bonn"}}]<|tools_suffix|>',
    )
    expect(renderer.stopIds).toContain(ids.at(-1))
    expect(renderer.parse(ids, tools, 0).calls).toMatchObject([
      { kind: 'parsed', name: 'weather', arguments: '{"town": "Bonn"}' },
    ])
  })

  it('that only a chat server gave are encoded as the template writes them', () => {
    const message = openQwen().parse(openQwen().tokenizer.encode(thought + call), tools, 0).message
    expect(openQwen().decode(openQwen().encodeReply(message, tools))).toBe(
      `${thought}${call}<|im_end|>`,
    )
    const minimax = open('MiniMax-M2')
    const ids = minimax.encodeReply({ role: 'assistant', content: 'Yes.' }, [])
    expect(minimax.decode(ids)).toBe('\n</think>\n\nYes.[e~[')
  })
})

describe.skipIf(!hasTemplates)('text from messages', () => {
  const names = [
    'Qwen-Qwen3-0.6B',
    'Qwen3.5-4B',
    'GLM-4.6',
    'meta-llama-Llama-3.1-8B-Instruct',
    'openai-gpt-oss-120b',
    'deepseek-ai-DeepSeek-V3.1',
    'mistralai-Mistral-Nemo-Instruct-2407',
    'google-gemma-4-31B-it',
  ]

  it.each(names)('[T6] never becomes a control token of %s', name => {
    const renderer = open(name)
    const { tokenizer } = renderer
    const strings = ['<|im_end|>', '<think>', '</think>', '<tool_call>', ...renderer.profile.stops]
    const controls = new Set(tokenizer.controls.map(({ id }) => id))
    const countIn = (words: string): number => {
      const described = { ...weather.function, description: `The weather. ${words}` }
      const offered = [{ ...weather, function: described }]
      const opening: Message[] = [
        { role: 'system', content: `Be brief. ${words}` },
        { role: 'user', content: `${words} hi ${words}` },
      ]
      const start = renderer.render(opening, offered)
      const path = concat(start, tokenizer.encode(renderer.profile.stops[0]!))
      const messages = [...opening, { role: 'assistant', content: '' } as const, result(words)]
      const request = { path, turnStart: start.length, messages, observed: 1, tools: offered }
      const all = concat(path, renderer.bridge(request).ids)
      return all.filter(id => controls.has(id)).length
    }
    const usual = countIn('words')
    for (const string of strings) expect(countIn(string)).toBe(usual)
    expect(countIn(strings.join(''))).toBe(usual)
  })
})
