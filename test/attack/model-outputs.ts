import { openParser, reasoningFormats, toolFormats } from '@espalier/text/parsers'
import { reserve } from '../fixtures/tool-calls.ts'
import { type Attack, hold, oneOf, piecesOf } from './attack.ts'

const pieces = [
  ...['<tool_call>', '</tool_call>', '<think>', '</think>', '<|channel|>', '<|message|>', '```'],
  ...['{"name": "reserve", "arguments": {', '}}', '"', '\\', '[', ']', '{', '}', ':', ',', '\n'],
  ...['<function=reserve>', '<parameter=a>', '</parameter>', '</function>', '[TOOL_CALLS]'],
  ...['reserve(', ')', "a='", 'null', '1e999', '\u0000', '\ud800', '🎉', '<', '>', 'a'.repeat(50)],
]

/** Model outputs that fit no format: they are read to their end, as calls or as text. */
export const modelOutputs: Attack = {
  name: 'model outputs',
  promise: 'O1',
  share: 150,
  async open() {
    return draw => {
      const options = {
        tools: oneOf([undefined, ...toolFormats], draw),
        reasoning: oneOf([undefined, ...reasoningFormats], draw),
        schemas: [reserve],
      }
      const text = piecesOf(pieces, 30, draw)
      const open = openParser(options).open()
      for (let at = 0; at < text.length; ) {
        const end = at + 1 + Math.floor(draw() * 20)
        open.push(text.slice(at, end))
        at = end
      }
      for (const call of open.end().output.calls) {
        if (call.kind !== 'call') continue
        const input: unknown = JSON.parse(call.arguments)
        hold(typeof input === 'object' && input !== null, `arguments ${call.arguments}`)
      }
    }
  },
}
