import type { ToolDefinition } from '../../message.ts'
import { closing, type Unit, type UnitResult } from '../blocks.ts'
import { type Broken, broken, callWithArguments, callWithValues, isName } from '../call.ts'
import { withoutLayout, withoutLines } from '../edges.ts'
import { scanJson } from '../json.ts'
import { Markers, markers } from '../markers.ts'
import { parameterSchema, schemaTypes } from '../schema.ts'
import type { Reader, Source } from '../source.ts'
import { toJsonValue, type ValueRule } from '../values.ts'

/** A tag whose head names something: a call, or one of its parameters. */
export interface Tag {
  readonly open: string
  /** What ends the head. */
  readonly end: string
  readonly close: string
  /** The attribute that holds the name. Without it the head is the name. */
  readonly name?: string
}

/** Calls written as tags around raw values. */
export interface TagUnit {
  readonly call: Tag
  readonly parameter: Tag
  /** Markers right before and after the call's own tags. */
  readonly wrap?: { readonly open: string; readonly close: string }
  /** The attribute of a parameter that tells its type, and what it says for text. */
  readonly type?: { readonly attribute: string; readonly text: string }
  /** Values stand on lines of their own. */
  readonly lines?: boolean
  /** Values may be CDATA sections, and escape characters as XML does. */
  readonly xml?: boolean
  /** The parameters may be one JSON object instead. */
  readonly json?: boolean
  readonly rule: ValueRule
}

/** A raw parameter, and whether its tag says that it is text. */
export interface Parameter {
  readonly name: string
  readonly raw: string
  readonly declared?: 'text' | 'json'
}

/** Tags: `<invoke name="…"><parameter name="…">value</parameter></invoke>` and its relatives. */
export function tagUnit(format: TagUnit, schemas: readonly ToolDefinition[]): Unit {
  const { call, wrap } = format
  const callEnd = markers(call.end)
  return {
    opens: [wrap?.open ?? call.open],
    closes: [wrap?.close ?? call.close],
    *read(source) {
      if (wrap) {
        source.skip(wrap.open.length)
        yield* source.spaces()
        if (!(yield* source.next(call.open))) return broken(`the call has no ${call.open}`)
      }
      source.skip(call.open.length)
      const head = yield* readTag(source, call, callEnd)
      if (head.kind === 'broken') return head
      const attempt = yield* readBody(source, { format, schemas, head })
      if (attempt.kind !== 'calls' || !wrap) return attempt
      const unclosed = yield* closing(source, wrap.close)
      return unclosed ? { ...unclosed, name: head.name } : attempt
    },
  }
}

interface Head {
  readonly kind: 'head'
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
  readonly closed: boolean
}

interface Body {
  readonly format: TagUnit
  readonly schemas: readonly ToolDefinition[]
  readonly head: Head
}

function* readBody(source: Source, { format, schemas, head }: Body): Reader<UnitResult> {
  const { call, parameter } = format
  const { name } = head
  if (!isName(name)) return broken(`${JSON.stringify(name.slice(0, 80))} is not a name`)
  if (head.closed) return { kind: 'calls', calls: [callWithValues(name, new Map())] }
  const parameterEnd = markers(parameter.end)
  const parameters: Parameter[] = []
  for (;;) {
    yield* source.spaces()
    if (yield* source.take(call.close)) break
    if (format.json && parameters.length === 0 && (yield* source.next('{'))) {
      return yield* readJsonBody(source, name, call.close)
    }
    if (!(yield* source.take(parameter.open))) return neither(source, call, name)
    const tag = yield* readTag(source, parameter, parameterEnd)
    if (tag.kind === 'broken') return { ...tag, name }
    const raw = yield* readValue(source, format)
    if (raw === undefined) return broken(`a parameter is cut off before ${parameter.close}`, name)
    parameters.push({ name: tag.name, raw, ...declaredType(tag, format) })
  }
  return { kind: 'calls', calls: [typedCall(name, parameters, { ...format, schemas })] }
}

function neither(source: Source, call: Tag, name: string): Broken {
  const problem = source.finished
    ? `the call is cut off before ${call.close}`
    : 'there is text where a parameter belongs'
  return broken(problem, name)
}

function* readJsonBody(source: Source, name: string, close: string): Reader<UnitResult> {
  const json = yield* scanJson(source)
  if (json.kind === 'broken') return broken(json.problem, name)
  const call = callWithArguments(name, json.text)
  const unclosed = yield* closing(source, close)
  if (unclosed) return { ...unclosed, name }
  return call.kind === 'broken' ? call : { kind: 'calls', calls: [call] }
}

/** Reads a tag's head from behind its opening marker to behind its end. */
function* readTag(source: Source, tag: Tag, ends: Markers): Reader<Head | Broken> {
  const found = yield* source.near(ends)
  if (!found) return broken(`${tag.open} is not followed by ${tag.end}`)
  const closed = tag.name !== undefined && found.text.endsWith('/')
  const attributes = closed ? found.text.slice(0, -1) : found.text
  source.skip(found.marker.length)
  if (tag.name === undefined) {
    const bad = /[<\n]/.test(found.text)
    return bad
      ? broken(`${tag.open} is not closed by ${tag.end}`)
      : { kind: 'head', name: found.text.trim(), attributes: new Map(), closed: false }
  }
  const parsed = parseAttributes(attributes)
  const name = parsed?.get(tag.name)
  return parsed && name !== undefined
    ? { kind: 'head', name, attributes: parsed, closed }
    : broken(`${tag.open} has no ${tag.name}="…"`)
}

const attribute = /\s*([\w:.-]+)="([^"]*)"/y

function parseAttributes(text: string): Map<string, string> | undefined {
  const attributes = new Map<string, string>()
  let index = 0
  while (index < text.length) {
    attribute.lastIndex = index
    const match = attribute.exec(text)
    if (!match) return text.slice(index).trim() === '' ? attributes : undefined
    attributes.set(match[1]!, unescapeXml(match[2]!))
    index = attribute.lastIndex
  }
  return attributes
}

function declaredType(tag: Head, { type }: TagUnit): Pick<Parameter, 'declared'> {
  const said = type && tag.attributes.get(type.attribute)
  if (said === undefined) return {}
  return { declared: said === type!.text ? 'text' : 'json' }
}

/** Reads a raw value and its closing tag; undefined if the tag never comes. */
function* readValue(source: Source, { parameter, xml }: TagUnit): Reader<string | undefined> {
  const parts: string[] = []
  const stops = new Markers(xml ? [parameter.close, cdataOpen] : [parameter.close])
  for (;;) {
    const collector = source.collect()
    const marker = yield* source.until(stops)
    const text = collector.text()
    collector.close()
    parts.push(xml ? unescapeXml(text) : text)
    if (marker === undefined) return undefined
    source.skip(marker.length)
    if (marker === parameter.close) return parts.join('')
    const section = source.collect()
    if ((yield* source.until(cdataEnd)) === undefined) return undefined
    parts.push(section.text())
    section.close()
    source.skip(cdataClose.length)
  }
}

const cdataOpen = '<![CDATA['
const cdataClose = ']]>'
const cdataEnd = markers(cdataClose)

const entities: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&amp;': '&',
}

const unescapeXml = (text: string): string =>
  text.replace(/&(?:lt|gt|quot|apos|amp);/g, entity => entities[entity]!)

/** What is needed to type the raw parameters of a call. */
export interface Typing {
  readonly schemas: readonly ToolDefinition[]
  readonly rule: ValueRule
  readonly lines?: boolean
}

/** A call from raw parameters, each typed by its tag or by the tool's schema. */
export function typedCall(name: string, parameters: readonly Parameter[], typing: Typing) {
  const { schemas, rule, lines } = typing
  const typed = parameters.map(parameter => {
    const raw = lines ? withoutLines(parameter.raw) : parameter.raw
    const schema = parameterSchema(schemas, name, parameter.name)
    const isText = parameter.declared
      ? parameter.declared === 'text'
      : mayBeText(schemaTypes(schema))
    return { raw, schema, isText }
  })
  const values = new Map<string, string>()
  for (const [index, raw] of withoutLayout(typed).entries()) {
    const { name: key, declared } = parameters[index]!
    const value = declaredValue(raw, declared, rule)
    values.set(key, value ?? toJsonValue(raw, typed[index]!.schema, rule))
  }
  return callWithValues(name, values)
}

const mayBeText = (types: ReadonlySet<string>): boolean => types.size === 0 || types.has('string')

/** The value of a parameter whose tag says what it is; undefined if it does not say. */
function declaredValue(
  raw: string,
  declared: Parameter['declared'],
  rule: ValueRule,
): string | undefined {
  if (declared === undefined) return undefined
  if (declared === 'text') return JSON.stringify(raw)
  return toJsonValue(raw, undefined, { ...rule, undeclared: 'json' })
}
