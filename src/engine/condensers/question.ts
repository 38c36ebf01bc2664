import { type Message, textOf } from '@espalier/text'

/** A longer text that ends in a question mark is not taken as a question. */
const longest = 500

/**
 * What the texts of an opening should help to answer: the line that begins with `Question:`, without
 * that word, or else the question with which the last thing that a user said begins or ends.
 */
export function questionIn(opening: readonly Message[]): string | undefined {
  const said = opening.filter(({ role }) => role === 'user').map(({ content }) => textOf(content))
  for (const text of said) {
    const found = /^[ \t]*Question:[ \t]*(\S.*)$/m.exec(text)
    if (found) return found[1]!.trim()
  }
  const lines = (said.at(-1) ?? '').split('\n').filter(line => line.trim() !== '')
  return lastQuestion(lines.at(-1) ?? '') ?? lastQuestion(lines[0] ?? '')
}

/** The last sentence of a line, if it is a question. */
function lastQuestion(line: string): string | undefined {
  if (!/[?？؟]\s*$/.test(line)) return undefined
  const sentence = line
    .split(/(?<=[.!?:])\s+|(?<=[。！？])/)
    .at(-1)!
    .trim()
  return sentence.length <= longest && /[\p{L}\p{N}]/u.test(sentence) ? sentence : undefined
}

/** A text cut around the question that stands in it, label included; joined, the parts are the text again. */
export function aroundQuestion(text: string, query: string | undefined): readonly string[] {
  const found = query === undefined ? -1 : text.lastIndexOf(query)
  if (found < 0) return [text]
  const label = /[ \t]*Question:[ \t]*$/.exec(text.slice(0, found))?.[0].length ?? 0
  const end = found + query!.length
  return [text.slice(0, found - label), text.slice(found - label, end), text.slice(end)].filter(
    part => part !== '',
  )
}
