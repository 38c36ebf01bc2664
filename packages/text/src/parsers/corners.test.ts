// Corners in which formats follow their originals' own rules.
import { expect, it } from 'vitest'
import type { ToolDefinition } from '../message.ts'
import { openParser, type ToolFormat } from './parser.ts'

const tools: readonly ToolDefinition[] = [
  {
    type: 'function',
    function: {
      name: 'book',
      description: '',
      parameters: {
        type: 'object',
        properties: {
          seats: { type: 'integer' },
          flags: { type: 'array' },
          name: { type: 'string' },
        },
      },
    },
  },
]

function argumentsOf(format: ToolFormat, text: string): unknown {
  const parser = openParser({ tools: format, reasoning: undefined, schemas: tools })
  const [call] = parser.parse(text).calls
  return call?.kind === 'call' ? JSON.parse(call.arguments) : call
}

const step3 = (name: string, value: string): string =>
  '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="book">' +
  `<steptml:parameter name="${name}">${value}</steptml:parameter></steptml:invoke>` +
  '<｜tool_call_end｜><｜tool_calls_end｜>'
const minimax = (name: string, value: string): string =>
  `<minimax:tool_call><invoke name="book"><parameter name="${name}">${value}</parameter></invoke></minimax:tool_call>`
const dsml = (name: string, value: string): string =>
  `<｜DSML｜tool_calls><｜DSML｜invoke name="book"><｜DSML｜parameter name="${name}" string="false">${value}</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>`

it.each<readonly [ToolFormat, string, unknown]>([
  ['step3', step3('seats', ' four '), { seats: 'four' }],
  ['step3', step3('extra', ' x\n'), { extra: 'x' }],
  ['deepseekv4', dsml('seats', ' four\n'), { seats: 'four' }],
  ['minimax-m2', minimax('seats', '\n\nfour\n'), { seats: 'four' }],
  ['minimax-m2', minimax('flags', "'single'"), { flags: "'single'" }],
  ['step3', step3('flags', "'single'"), { flags: 'single' }],
])(
  '%s: a value that stays text though it should not be is stripped as the original strips',
  (format, text, expected) => {
    expect(argumentsOf(format, text)).toEqual(expected)
  },
)

it.each(['<|close|>think', '<|close|>', '<|open|>tools', '<|close|>message'])(
  'kimi_k3: an output that ends inside a marker, %s, ends before it',
  cut => {
    const parser = openParser({ tools: 'kimi_k3', reasoning: 'kimi_k3', schemas: tools })
    expect(parser.parse(`<|open|>think<|sep|>so ${cut}`).reasoning).toBe('so ')
    const text = `<|open|>response<|sep|>well${cut}`
    expect(parser.parse(text).content).toBe('well')
  },
)

it('muse: the rest of a header that the prompt opened is no content, in one piece or letter by letter', () => {
  const parser = openParser({ tools: 'muse', reasoning: undefined, schemas: tools })
  const spoken = ' to=user<|message|>Well.'
  const open = parser.open()
  for (const letter of spoken) open.push(letter)
  expect([parser.parse(spoken).content, open.end().output.content]).toEqual(['Well.', 'Well.'])
  expect(parser.parse('<|message|>Well.').content).toBe('Well.')
  expect(parser.parse(' to=be or not').content).toBe(' to=be or not')
  const called = parser.parse(
    ' to=book<|message|><atem:function_calls>\n<atem:invoke name="book">\n</atem:invoke>\n</atem:function_calls>',
  )
  expect([called.content.trim(), called.calls.length]).toEqual(['', 1])
})
