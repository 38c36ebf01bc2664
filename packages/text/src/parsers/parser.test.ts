import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { reserve, reserved, sampleCalls } from '../../../../test/fixtures/tool-calls.ts'
import {
  type OutputParser,
  type OutputText,
  openParser,
  type ParsedOutput,
  type ParserOptions,
  type ToolFormat,
  toolFormats,
  UnknownFormatError,
} from './parser.ts'

const runs = process.env.ESPALIER_SOAK ? 500 : 25

const parserOf = (tools: ToolFormat | undefined, more: Partial<ParserOptions> = {}) =>
  openParser({ tools, reasoning: undefined, schemas: [reserve], ...more })

/** In cline every value is text. */
const expectedOf = (format: ToolFormat): object =>
  format === 'cline'
    ? Object.fromEntries(Object.entries(reserved).map(([key, value]) => [key, String(value)]))
    : reserved

const callsOf = (output: ParsedOutput): unknown[] =>
  output.calls.map(call =>
    call.kind === 'call'
      ? { name: call.name, ...(JSON.parse(call.arguments) as object) }
      : { malformed: call.raw },
  )

function stream(parser: OutputParser, chunks: readonly OutputText[]) {
  const open = parser.open()
  const parts = chunks.flatMap(chunk => [...open.push(chunk)])
  const { parts: last, output } = open.end()
  const all = [...parts, ...last]
  const text = (kind: 'content' | 'reasoning') =>
    all.map(part => (part.kind === kind ? part.text : '')).join('')
  const calls = all.flatMap(part => (part.kind === 'call' ? [part.call] : []))
  expect({ content: text('content'), reasoning: text('reasoning'), calls }).toEqual({
    content: output.content,
    reasoning: output.reasoning ?? '',
    calls: output.calls,
  })
  return output
}

describe.each(toolFormats)('format %s', format => {
  const sample = sampleCalls[format]
  const call = { name: 'reserve', ...expectedOf(format) }
  const parser = parserOf(format)

  it('reads a call', () => {
    const output = parser.parse(sample)
    expect(callsOf(output)).toEqual([call])
    expect(output.content.trim()).toBe('')
    expect(output.reasoning).toBeUndefined()
  })

  it('keeps the text around calls, in order', () => {
    const output = parser.parse(`Before. ${sample} Between. ${sample} After.`)
    expect(callsOf(output)).toEqual([call, call])
    expect(output.parts.map(part => (part.kind === 'call' ? 'call' : part.text.trim()))).toEqual([
      'Before.',
      'call',
      'Between.',
      'call',
      'After.',
    ])
  })

  it('never completes a call that is cut off', () => {
    for (let length = 0; length < sample.length; length++) {
      for (const cut of callsOf(parser.parse(sample.slice(0, length)))) {
        if (!Object.hasOwn(cut as object, 'malformed')) expect(cut).toEqual(call)
      }
    }
  })

  it('loses nothing of a call that is cut off', () => {
    const cut = sample.slice(0, Math.floor(sample.length * 0.7))
    const output = parser.parse(`Well, ${cut}`)
    const raw = output.calls.map(broken => (broken.kind === 'malformed' ? broken.raw : '')).join('')
    expect(output.calls.every(broken => broken.kind === 'malformed')).toBe(true)
    // Only framing may be missing: what the message says is all there.
    expect(`${output.content}${raw}`).toContain('Blå')
  })

  it('streams to the same result in any chunking', () => {
    const fragments = fc.oneof(
      { weight: 3, arbitrary: fc.constant(sample) },
      { weight: 3, arbitrary: fc.nat(sample.length).map(end => sample.slice(0, end)) },
      { weight: 2, arbitrary: fc.nat(sample.length).map(start => sample.slice(start)) },
      { weight: 1, arbitrary: fc.string({ maxLength: 8 }) },
      fc.constantFrom('"', "'", '\\', '{', '[', '<', '\n', '</s>', '<|im_end|>', '}}', '"}'),
    )
    const texts = fc.array(fragments, { maxLength: 6 }).map(found => found.join(''))
    const cuts = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 50 })
    fc.assert(
      fc.property(texts, cuts, (text, lengths) => {
        expect(stream(parser, chunk(text, lengths))).toEqual(parser.parse(text))
      }),
      { seed: 7, numRuns: runs },
    )
  })

  it('takes linear time, whatever it is given', () => {
    const cuts = [0.15, 0.35, 0.55, 0.75, 0.95].map(share =>
      sample.slice(0, Math.floor(sample.length * share)),
    )
    for (const unit of [...cuts, sample, '<', '[', '{"', '[f(', '<a><b>', '\\"']) {
      for (const text of [unit, `${sample.slice(0, sample.length / 2)}${unit}`]) {
        expectLinear(size => {
          parser.parse(text + unit.repeat(Math.ceil(size / unit.length)))
        })
      }
    }
  })
})

function chunk(text: string, lengths: readonly number[]): string[] {
  const chunks: string[] = []
  for (let index = 0, turn = 0; index < text.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1
    chunks.push(text.slice(index, index + length))
    index += length
  }
  return chunks
}

/** Four times the text must not take much more than four times the time; quadratic would be 16. */
function expectLinear(work: (size: number) => void): void {
  const measure = (size: number) => {
    const before = process.cpuUsage().user
    work(size)
    return (process.cpuUsage().user - before) / 1000
  }
  for (let attempt = 0; ; attempt++) {
    const small = Math.max(4, measure(8_000))
    const large = measure(32_000)
    if (large < 10 * small) return
    // A compiler or collector at work may double a figure once, not time and again.
    if (attempt === 3) throw new Error(`8 kB took ${small} ms, 32 kB took ${large} ms`)
  }
}

describe('calls', () => {
  it('keeps calls of tools that nobody offered', () => {
    const output = parserOf('qwen25').parse('<tool_call>{"name": "dance"}</tool_call>')
    expect(output.calls).toEqual([{ kind: 'call', name: 'dance', arguments: '{}' }])
  })

  it('keeps numbers as they were written', () => {
    const args = '{"a": 1.0, "b": 12345678901234567890, "c": 1e2}'
    const output = parserOf('hermes').parse(
      `<tool_call>{"name": "f", "arguments": ${args}}</tool_call>`,
    )
    expect(output.calls).toEqual([{ kind: 'call', name: 'f', arguments: args }])
  })

  it.each([
    ['missing', '{"name": "f"}', '{}'],
    ['null', '{"name": "f", "arguments": null}', '{}'],
    ['a string that holds an object', '{"name": "f", "arguments": "{\\"a\\": 1}"}', '{"a": 1}'],
  ])('reads arguments that are %s', (_, object, args) => {
    const output = parserOf('qwen25').parse(`<tool_call>${object}</tool_call>`)
    expect(output.calls).toEqual([{ kind: 'call', name: 'f', arguments: args }])
  })

  it('says what is wrong with a malformed call, and reads on behind it', () => {
    const broken = '<tool_call>{"name": "f", "arguments": {"a": 1,}}</tool_call>'
    const output = parserOf('qwen25').parse(`${broken}${sampleCalls.qwen25}`)
    expect(output.calls[0]).toEqual({
      kind: 'malformed',
      name: 'f',
      raw: broken,
      problem: 'the JSON has "}" where a key belongs',
    })
    expect(output.calls[1]).toMatchObject({ kind: 'call', name: 'reserve' })
  })

  it('reads on behind a string that never ends', () => {
    const broken = '<tool_call>{"name": "f", "arguments": {"a": "x}}</tool_call>'
    const output = parserOf('qwen25').parse(`${broken}\n${sampleCalls.qwen25}`)
    expect(output.calls.map(call => call.kind)).toEqual(['malformed', 'call'])
  })

  it('returns one bad item of a list as malformed, the others as calls', () => {
    const output = parserOf('mistral').parse('[TOOL_CALLS] [{"name": "f"}, 3, {"name": "g"}]')
    expect(output.calls.map(call => call.kind)).toEqual(['call', 'malformed', 'call'])
  })

  it('reads a plain JSON answer of Llama as text, and a call as a call', () => {
    const llama = parserOf('llama3')
    const answer = '{"name": "x", "note": "no call"}'
    expect(llama.parse(answer)).toMatchObject({ content: answer, calls: [] })
    const call = '{"name": "reserve", "parameters": {}}; {"name": "f", "parameters": {}}'
    expect(llama.parse(call).calls.map(found => found.name)).toEqual(['reserve', 'f'])
  })

  it('gives the id that a format carries', () => {
    const output = parserOf('kimi_k2').parse(sampleCalls.kimi_k2)
    expect(output.calls[0]).toMatchObject({ id: 'functions.reserve:0', name: 'reserve' })
  })

  it('keeps a broken call of gpt-oss in one piece', () => {
    const broken = sampleCalls['gpt-oss'].replace('"people"', 'people')
    const output = parserOf('gpt-oss').parse(`${broken}${sampleCalls['gpt-oss']}`)
    expect(output.calls[0]).toMatchObject({ kind: 'malformed', name: 'reserve', raw: broken })
    expect(output.calls[1]).toMatchObject({ kind: 'call', name: 'reserve' })
  })

  it('refuses formats that it does not know', () => {
    const tools = 'morse' as ToolFormat
    expect(() => parserOf(tools)).toThrow(UnknownFormatError)
    expect(() => parserOf(tools)).toThrow(/"morse".*qwen25/)
  })
})

describe('raw parameters', () => {
  const parse = (body: string) =>
    callsOf(parserOf('qwen3_coder').parse(`<tool_call><function=reserve>${body}</function>`))[0]
  const parameter = (name: string, value: string) => `<parameter=${name}>${value}</parameter>`

  it('types them by the schema', () => {
    const body = [
      parameter('room', '12'),
      parameter('people', '12'),
      parameter('projector', 'True'),
      parameter('notes', 'null'),
      parameter('dates', "['a', 'b']"),
      parameter('other', '12'),
    ].join('\n')
    expect(parse(body)).toEqual({
      name: 'reserve',
      room: '12',
      people: 12,
      projector: true,
      notes: null,
      dates: ['a', 'b'],
      other: '12',
    })
  })

  it('takes layout off, and leaves what belongs to the text', () => {
    const own = parameter('room', '\n  x = 1\n\n') + parameter('people', '\n3\n')
    expect(parse(own)).toMatchObject({ room: '  x = 1\n', people: 3 })
    const layout = parameter('room', '\t a\n') + parameter('people', '\t 3\n')
    expect(parse(layout)).toMatchObject({ room: 'a', people: 3 })
  })
})

describe('reasoning', () => {
  const qwen = parserOf('qwen25', { reasoning: 'qwen3' })
  const call = sampleCalls.qwen25

  it('is split off first: a call within it is no call', () => {
    const output = qwen.parse(`<think>I could ${call}</think>No.`)
    expect(output).toMatchObject({ reasoning: `I could ${call}`, content: 'No.', calls: [] })
  })

  it('ends at a call if nothing else ends it', () => {
    const output = qwen.parse(`<think>Now.\n${call}`)
    expect(output).toMatchObject({ reasoning: 'Now.\n', content: '' })
    expect(output.calls).toHaveLength(1)
  })

  it('survives as a word within a string of a call', () => {
    const object = '{"name": "f", "arguments": {"a": "<think> </think> </tool_call>"}}'
    const output = qwen.parse(`<think>So.</think><tool_call>${object}</tool_call>`)
    expect(callsOf(output)).toEqual([{ name: 'f', a: '<think> </think> </tool_call>' }])
    expect(output.reasoning).toBe('So.')
  })

  it('may come in several blocks, with text between them', () => {
    const output = qwen.parse('Hm. <think>a</think>One. <think>b</think>Two.')
    expect(output).toMatchObject({ reasoning: 'ab', content: 'Hm. One. Two.' })
  })

  it('begins in the prompt if told so', () => {
    const inside = parserOf('qwen25', { reasoning: 'qwen3', opensInReasoning: true })
    expect(inside.parse('a</think>b')).toMatchObject({ reasoning: 'a', content: 'b' })
    expect(qwen.parse('a</think>b')).toMatchObject({ reasoning: undefined, content: 'a</think>b' })
    const r1 = parserOf(undefined, { reasoning: 'deepseek-r1' })
    expect(r1.parse('a</think>b')).toMatchObject({ reasoning: 'a', content: 'b' })
  })

  it('arrives while it is thought, and calls when they are complete', () => {
    const open = qwen.open()
    expect(open.push('<think>Let')).toEqual([{ kind: 'reasoning', text: 'Let' }])
    expect(open.push(' me</th')).toEqual([{ kind: 'reasoning', text: ' me' }])
    expect(open.push('ink>Yes')).toEqual([{ kind: 'content', text: 'Yes' }])
    expect(open.push(call.slice(0, -1))).toEqual([])
    expect(open.push('>')).toMatchObject([{ kind: 'call', call: { name: 'reserve' } }])
  })

  it('of gpt-oss is its analysis channel', () => {
    const oss = parserOf('gpt-oss', { reasoning: 'gpt-oss' })
    const output = oss.parse(
      `<|channel|>analysis<|message|>Hm.<|end|>${sampleCalls['gpt-oss']}<|start|>assistant<|channel|>final<|message|>Done.<|return|>`,
    )
    expect(output).toMatchObject({ reasoning: 'Hm.', content: 'Done.' })
    expect(output.calls).toHaveLength(1)
  })
})

describe('outputs made from token ids', () => {
  const controls = ['<tool_call>', '</tool_call>', '<think>', '</think>', '<|im_end|>', '<|sep|>']
  const qwen = parserOf('qwen25', { reasoning: 'qwen3', controls })
  const control = (text: string) => ({ text, control: true })
  const text = (plain: string) => ({ text: plain, control: false })
  const body = '{"name": "reserve", "arguments": {}}'

  it('have calls only where control tokens arrived', () => {
    const spelled = [text(`<tool_call>${body}</tool_call>`)]
    expect(qwen.parse(spelled)).toMatchObject({ content: spelled[0]!.text, calls: [] })
    const sampled = [control('<tool_call>'), text(body), control('</tool_call>')]
    expect(qwen.parse(sampled)).toMatchObject({ content: '', calls: [{ name: 'reserve' }] })
  })

  it('end a call only with the control token', () => {
    const output = qwen.parse([
      control('<tool_call>'),
      text('oops </tool_call> '),
      control('</tool_call>'),
      text('Sorry.'),
    ])
    expect(output.calls).toMatchObject([
      { kind: 'malformed', raw: '<tool_call>oops </tool_call> </tool_call>' },
    ])
    expect(output.content).toBe('Sorry.')
  })

  it('have thinking and ends of turns only where control tokens arrived', () => {
    const output = qwen.parse([
      control('<think>'),
      text('The tag </think> ends it.'),
      control('</think>'),
      text('Use <|im_end|>'),
      control('<|im_end|>'),
    ])
    expect(output.reasoning).toBe('The tag </think> ends it.')
    expect(output.content).toBe('Use <|im_end|>')
  })

  it('count markers in part made of control tokens', () => {
    const kimi = parserOf('kimi_k3', { controls: ['<|open|>', '<|close|>', '<|sep|>'] })
    const sample = sampleCalls.kimi_k3
    expect(kimi.parse([text(sample)])).toMatchObject({ content: sample, calls: [] })
    const pieces = sample
      .split(/(<\|(?:open|close|sep)\|>)/)
      .map((piece, index) => ({ text: piece, control: index % 2 === 1 }))
    expect(callsOf(kimi.parse(pieces))).toEqual([{ name: 'reserve', ...reserved }])
  })

  it('carry tokens through the reader of channels to the reader of calls', () => {
    const oss = parserOf('gpt-oss', {
      reasoning: 'gpt-oss',
      controls: ['<|start|>', '<|channel|>', '<|message|>', '<|call|>', '<|constrain|>', '<|end|>'],
    })
    const pieces = `<|channel|>analysis<|message|>Hm.<|end|>${sampleCalls['gpt-oss']}`
      .split(/(<\|\w+\|>)/)
      .map((piece, index) => ({ text: piece, control: index % 2 === 1 }))
    const output = oss.parse(pieces)
    expect(output.reasoning).toBe('Hm.')
    expect(callsOf(output)).toEqual([{ name: 'reserve', ...reserved }])
  })

  it('know the suffix that a vocabulary gives to Hunyuan', () => {
    const suffixed = sampleCalls.hunyuan.replace(/<(\/?\w+)>(?!<\/arg_value)/g, (tag, name) =>
      name === 'stue' ? tag : `<${name}:opensource>`,
    )
    const vocabulary = ['<tool_calls:opensource>']
    const pieces = suffixed
      .split(/(<tool_calls:opensource>)/)
      .map((piece, index) => ({ text: piece, control: index % 2 === 1 }))
    const hunyuan = parserOf('hunyuan', { controls: vocabulary })
    expect(hunyuan.parse(pieces).calls).toMatchObject([{ kind: 'call', name: 'reserve' }])
  })
})
