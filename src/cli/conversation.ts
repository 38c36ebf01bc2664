import { type Message, textOf } from '@espalier/text'
import type { Colour, Terminal } from './terminal.ts'

const colours: Record<Message['role'], Colour> = {
  system: 'dim',
  developer: 'dim',
  user: 'blue',
  assistant: 'green',
  tool: 'magenta',
}

/** A conversation as lines: who speaks, what is said, which tools are called. */
export function conversationLines(
  messages: readonly Message[],
  { paint }: Pick<Terminal, 'paint'>,
): readonly string[] {
  return messages.flatMap(message => {
    const head = paint(colours[message.role], message.role.padEnd(10))
    return linesOf(message).map((line, index) => `${index === 0 ? head : ' '.repeat(10)} ${line}`)
  })
}

function linesOf(message: Message): readonly string[] {
  const said = textOf(message.content).trim()
  const lines = said === '' ? [] : said.split('\n')
  if (message.role !== 'assistant') return lines.length > 0 ? lines : ['']
  const thought = message.reasoning_content?.trim()
  const calls = (message.tool_calls ?? []).map(
    ({ function: { name, arguments: text } }) => `→ ${name}(${text})`,
  )
  return [...(thought ? [`(${thought})`] : []), ...lines, ...calls]
}
