// A conversation rendered and encoded as a whole, and an answer's tool call parsed.
import type { Message } from '../../../dist/index.js'
import { openRenderer, type ToolDefinition } from '../../../dist/tokens.js'
import { microseconds, printFigures, readWork } from './side.ts'

const work = await readWork<{
  readonly model: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  readonly answer: readonly number[]
}>()
const renderer = await openRenderer(work.model)
const answer = Int32Array.from(work.answer)
const parse = () => renderer.parse(answer, work.tools, 0)
if (!('toolCalls' in parse().message || 'tool_calls' in parse().message)) {
  throw new Error('no call was read')
}
// Equal conversations share what was rendered: each render gets a first message of its own.
let count = 0
const render = () => {
  const [first, ...rest] = work.messages
  const content = `${first?.content} ${count++}`
  return renderer.render([{ ...first, content } as Message, ...rest], work.tools)
}
printFigures({
  tokens: render().length,
  renderMicroseconds: microseconds(render),
  parseMicroseconds: microseconds(parse),
})
