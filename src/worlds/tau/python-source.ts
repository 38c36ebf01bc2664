import type { PythonDict, PythonValue } from '@espalier/text/python'
import { readLiteral } from '@espalier/text/python'

/**
 * A constructor call in a Python source, such as `Task(user_id="…", actions=[…])`: its name and its
 * keyword arguments. Only these and literals are ever read; nothing is evaluated.
 */
export interface Construction {
  readonly name: string
  readonly fields: ReadonlyMap<string, Construct>
}

/** A literal, a construction, or a list of constructions. */
export type Construct = PythonValue | Construction | readonly Construction[]

/** Reads the list of constructions that the source assigns to a variable. */
export function readAssignment(source: string, variable: string): readonly Construction[] {
  const reader = readerAt(source, assignmentOffset(source, variable))
  return readConstructions(reader)
}

/** Reads the literal that the source assigns to a variable. */
export function readAssignedLiteral(source: string, variable: string): PythonValue {
  return readLiteral(source, assignmentOffset(source, variable)).value
}

function assignmentOffset(source: string, variable: string): number {
  const match = new RegExp(`^${variable}[ \\t]*=[ \\t]*`, 'm').exec(source)
  if (match === null) throw new Error(`The source assigns nothing to ${variable}.`)
  return match.index + match[0].length
}

/** Reads the literal that the method `get_info` of a tool returns. */
export function readToolSchema(source: string): PythonDict {
  const method = Math.max(0, source.indexOf('def get_info'))
  const result = /^[ \t]+return[ \t]+/m.exec(source.slice(method))
  if (result === null) throw new Error('The source has no get_info that returns.')
  const { value } = readLiteral(source, method + result.index + result[0].length)
  if (value instanceof Map) return value
  throw new Error('What get_info returns is not a dict.')
}

/** The names in a list such as `ALL_TOOLS = [Calculate, Think]`. */
export function readNames(source: string, variable: string): readonly string[] {
  const start = assignmentOffset(source, variable)
  const end = source.indexOf(']', start)
  return source.slice(start, end < 0 ? undefined : end).match(/[A-Za-z_]\w*/g) ?? []
}

/** The triple-quoted f-strings of a source, as templates with their placeholders, in order. */
export function readTemplates(source: string): readonly string[] {
  return source
    .split('f"""')
    .slice(1)
    .map(rest => rest.slice(0, rest.indexOf('"""')))
}

/** Fills an f-string's placeholders; doubled braces become single ones. */
export function fillTemplate(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{\{|\}\}|\{(\w+)\}/g, (match, name: string | undefined) => {
    if (name === undefined) return match[0] as string
    const value = values[name]
    if (value === undefined) {
      throw new Error(
        `The prompt asks for {${name}}. Known: ${Object.keys(values).join(', ') || 'nothing'}.`,
      )
    }
    return value
  })
}

interface LiteralReader {
  readonly source: string
  offset: number
}

const SPACE = /(?:[ \t\r\n]+|#[^\n]*)*/y

function readerAt(source: string, offset: number): LiteralReader {
  const reader = { source, offset }
  skipSpace(reader)
  return reader
}

function skipSpace(reader: LiteralReader): void {
  SPACE.lastIndex = reader.offset
  SPACE.test(reader.source)
  reader.offset = SPACE.lastIndex
}

function accept(reader: LiteralReader, symbol: string): boolean {
  if (reader.source[reader.offset] !== symbol) return false
  reader.offset++
  skipSpace(reader)
  return true
}

function expect(reader: LiteralReader, symbol: string): void {
  if (accept(reader, symbol)) return
  const line = reader.source.slice(0, reader.offset).split('\n').length
  const found = reader.source[reader.offset] ?? 'the end'
  throw new Error(`Expected "${symbol}" at line ${line}, found ${found}.`)
}

const NAME = /[A-Za-z_]\w*/y

function readName(reader: LiteralReader): string | undefined {
  NAME.lastIndex = reader.offset
  const name = NAME.exec(reader.source)?.[0]
  if (name === undefined) return undefined
  reader.offset += name.length
  skipSpace(reader)
  return name
}

function readConstructions(reader: LiteralReader): readonly Construction[] {
  const found: Construction[] = []
  expect(reader, '[')
  while (!accept(reader, ']')) {
    found.push(readConstruction(reader))
    if (!accept(reader, ',')) {
      expect(reader, ']')
      break
    }
  }
  return found
}

function readConstruction(reader: LiteralReader): Construction {
  const name = readName(reader)
  if (name === undefined) expect(reader, 'Task')
  expect(reader, '(')
  const fields = new Map<string, Construct>()
  while (!accept(reader, ')')) {
    const field = readName(reader)
    expect(reader, '=')
    fields.set(field ?? '', readConstruct(reader))
    if (!accept(reader, ',')) {
      expect(reader, ')')
      break
    }
  }
  return { name: name as string, fields }
}

/** A list whose first item is a call is a list of constructions; everything else is a literal. */
const CONSTRUCTIONS = /\[(?:[ \t\r\n]+|#[^\n]*)*[A-Z]\w*\(/y

function readConstruct(reader: LiteralReader): Construct {
  CONSTRUCTIONS.lastIndex = reader.offset
  if (CONSTRUCTIONS.test(reader.source)) return readConstructions(reader)
  const { value, end } = readLiteral(reader.source, reader.offset)
  reader.offset = end
  skipSpace(reader)
  return value
}
