import { type ImagePart, type Message, textOf } from '@espalier/text'
import { parseReference } from '@espalier/text/images'
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

/** What a message says, with a line for each image where it was seen. */
function wordsOf({ content }: Message): string {
  if (typeof content === 'string' || content === null) return textOf(content)
  return content.map(part => (part.type === 'text' ? part.text : `\n${imageLine(part)}\n`)).join('')
}

function imageLine(part: ImagePart): string {
  const image = part.type === 'image_url' ? parseReference(part.image_url.url) : undefined
  if (!image) return '[image]'
  return `[image of ${image.width} x ${image.height} pixels: images/${image.digest}.${image.kind}]`
}

function linesOf(message: Message): readonly string[] {
  const said = wordsOf(message).trim()
  const lines = said === '' ? [] : said.split('\n')
  if (message.role !== 'assistant') return lines.length > 0 ? lines : ['']
  const thought = message.reasoning_content?.trim()
  const calls = (message.tool_calls ?? []).map(
    ({ function: { name, arguments: text } }) => `→ ${name}(${text})`,
  )
  return [...(thought ? [`(${thought})`] : []), ...lines, ...calls]
}
