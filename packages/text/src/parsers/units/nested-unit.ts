import type { ToolDefinition } from '../../message.ts'
import type { Unit, UnitResult } from '../blocks.ts'
import { broken, callWithValues, isName } from '../call.ts'
import { markers } from '../markers.ts'
import { itemSchema, propertySchema, type Schema, schemaTypes } from '../schema.ts'
import type { Reader, Source } from '../source.ts'
import { toJsonValue, type ValueRule } from '../values.ts'

/** What stands before every tag. */
const prefix = ']<]minimax[>['
const open = `${prefix}<invoke name="`
const close = `${prefix}</invoke>`
const tag = markers(`${prefix}<`)
const tagEnd = markers('>')
const nameEnd = markers('">')

/** How deep tags may nest. */
const MAXIMUM_DEPTH = 100

interface Element {
  readonly name: string
  readonly text: string
  readonly children: readonly Element[]
}

/** Tags named after the parameters; objects are nested tags, lists are tags named `item`. */
export function nestedUnit(schemas: readonly ToolDefinition[]): Unit {
  return {
    opens: [open],
    closes: [close],
    *read(source) {
      source.skip(open.length)
      const head = yield* source.near(nameEnd)
      if (!head || !isName(head.text)) return broken('the call has no name')
      source.skip(head.marker.length)
      const content = yield* readContent(source, 'invoke', 0)
      if (typeof content === 'string') return broken(content, head.text)
      if (content.text.trim() !== '') {
        return broken('there is text where a parameter belongs', head.text)
      }
      const tool = schemas.find(schema => schema.function.name === head.text)
      const values = new Map<string, string>()
      for (const child of content.children) {
        const schema = propertySchema(tool?.function.parameters, child.name)
        values.set(child.name, toJson(child, schema, top))
      }
      return { kind: 'calls', calls: [callWithValues(head.text, values)] } satisfies UnitResult
    },
  }
}

/** Reads what a tag holds, and its closing tag. */
function* readContent(source: Source, name: string, depth: number): Reader<Element | string> {
  if (depth > MAXIMUM_DEPTH) return `the tags nest deeper than ${MAXIMUM_DEPTH}`
  const end = `${prefix}</${name}>`
  const children: Element[] = []
  let text = ''
  for (;;) {
    const collector = source.collect()
    const marker = yield* source.until(tag)
    text += collector.text()
    collector.close()
    if (marker === undefined) return `the call is cut off before ${end}`
    if (yield* source.take(end)) {
      const mixed = children.length > 0 && text.trim() !== ''
      return mixed ? `there is text between the tags of ${name}` : { name, text, children }
    }
    source.skip(marker.length)
    const head = yield* source.near(tagEnd)
    if (!head || head.text.startsWith('/') || head.text === '') {
      return `the tag of ${name} is not closed by ${end}`
    }
    source.skip(1)
    const child = yield* readContent(source, head.text, depth + 1)
    if (typeof child === 'string') return child
    children.push(child)
  }
}

/** A parameter that nobody declared is text. */
const top: ValueRule = { undeclared: 'text', union: 'text' }
/** Within an object or list, what looks like a number or a flag is one. */
const inner: ValueRule = { undeclared: 'json', union: 'json' }

function toJson(element: Element, schema: Schema, rule: ValueRule): string {
  const types = schemaTypes(schema)
  const { text, children } = element
  if (children.length === 0 && text.trim() === '' && types.size > 0) {
    if (types.has('string')) return JSON.stringify(text)
    if (types.has('array')) return '[]'
    if (types.has('object')) return '{}'
  }
  if (children.length === 0) {
    const empty = rule === inner && text === ''
    return empty ? '{}' : toJsonValue(text, schema, rule)
  }
  const isList = types.has('array')
    ? !types.has('object') || children.every(child => child.name === 'item')
    : !types.has('object') && children.every(child => child.name === 'item')
  if (isList) {
    return `[${children.map(child => toJson(child, itemSchema(schema), inner)).join(', ')}]`
  }
  const members = new Map<string, string>()
  for (const child of children) {
    members.set(child.name, toJson(child, propertySchema(schema, child.name), inner))
  }
  const entries = [...members].map(([key, value]) => `${JSON.stringify(key)}: ${value}`)
  return `{${entries.join(', ')}}`
}
