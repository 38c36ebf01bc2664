import { cleanDoc } from './program/library/inspect.ts'

/** What the documentation of a function says. */
export interface Docstring {
  /** The first line. */
  readonly short: string
  /** What comes after it, up to the first section. */
  readonly long: string
  /** What the section of arguments says of each. */
  readonly parameters: ReadonlyMap<string, string>
}

const TITLES =
  /^(Arguments|Args|Parameters|Params|Raises|Exceptions|Except|Attributes|Example|Examples|Returns|Yields):[ \t\r\f\v]*$/gm
const ARGUMENTS = new Set(['Arguments', 'Args', 'Parameters', 'Params'])

/** Reads documentation in Google's style, as the package `docstring_parser` does. */
export function readDocstring(doc: string): Docstring {
  const text = cleanDoc(doc)
  const titles = [...text.matchAll(TITLES)]
  const description = titles[0] ? text.slice(0, titles[0].index) : text
  const [short = '', ...rest] = description.split('\n')
  const parameters = new Map<string, string>()
  titles.forEach((title, index) => {
    if (!ARGUMENTS.has(title[1] as string)) return
    const start = title.index + title[0].length
    readArguments(text.slice(start, titles[index + 1]?.index), parameters)
  })
  return { short, long: rest.join('\n').trim(), parameters }
}

function readArguments(section: string, into: Map<string, string>): void {
  const outside = /\n\S/.exec(section)
  const chunk = section.slice(0, outside?.index).replace(/^\n+|\n+$/g, '')
  const margin = /^\s*/.exec(chunk)?.[0] ?? ''
  const starts = [...chunk.matchAll(new RegExp(`^${margin}(?=\\S)`, 'gm'))]
  starts.forEach((start, index) => {
    const part = chunk
      .slice(start.index + start[0].length, starts[index + 1]?.index)
      .replace(/^\n+|\n+$/g, '')
    const colon = part.indexOf(':')
    if (colon < 0) return
    into.set(argumentName(part.slice(0, colon)), argumentText(part.slice(colon + 1)))
  })
}

/** `name (type)` names `name`. */
function argumentName(before: string): string {
  return /^\s*(.+?)\s*\(\s*(.*\S+)\s*\)/.exec(before)?.[1] ?? before
}

function argumentText(after: string): string {
  const text = after.startsWith(' ') ? after.slice(1) : after
  const [first = '', ...rest] = text.split('\n')
  const whole = rest.length === 0 ? first : `${first}\n${cleanDoc(rest.join('\n'))}`
  return whole.replace(/^\n+|\n+$/g, '')
}
