/** What Python's `splitlines` takes for the end of a line, as a class of a pattern. */
const BREAKS = '\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029'

/** What Python takes for white space, as a class of a pattern. */
const WHITESPACE = '\\s\\x1c-\\x1f\\x85'

const LINE = new RegExp(`[^${BREAKS}]*(?:\\r\\n|[${BREAKS}])|[^${BREAKS}]+$`, 'g')
const VISIBLE = new RegExp(`[^${WHITESPACE}]`)

/** Lines that are not blank get a prefix, as `textwrap.indent` does it. */
export function indent(text: string, prefix: string): string {
  const lines = text.match(LINE) ?? []
  return lines.map(line => (VISIBLE.test(line) ? prefix + line : line)).join('')
}
