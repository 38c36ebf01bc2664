import {
  isJsonObject,
  type JsonValue,
  jsonItems,
  jsonMembers,
  jsonText,
  jsonValue,
} from './json.ts'
import type { ParsedCall } from './parser.ts'

/** Why something is not a call, and the tool it seems to have meant. */
export interface Broken {
  readonly kind: 'broken'
  readonly problem: string
  readonly name?: string
}

/** The keys under which a format writes a call as a JSON object. */
export interface CallKeys {
  readonly name: readonly string[]
  readonly arguments: readonly string[]
  readonly id?: string
}

/** The keys that most formats share. */
export const commonKeys: CallKeys = { name: ['name'], arguments: ['arguments', 'parameters'] }

export const broken = (problem: string, name?: string): Broken =>
  name === undefined ? { kind: 'broken', problem } : { kind: 'broken', problem, name }

/** The calls of a JSON value: an object is one call, an array one per item. */
export function callsOf(
  json: JsonValue,
  read: (object: JsonValue) => ParsedCall | Broken,
): ParsedCall[] {
  const values = json.text.startsWith('[') ? jsonItems(json).map(jsonValue) : [json]
  return values.map(value => {
    const isObject = value.text.startsWith('{')
    const call = isObject ? read(value) : broken('the call is not a JSON object')
    return call.kind === 'broken' ? malformed(call, value.text) : call
  })
}

const writtenName = /"(?:tool_)?name"\s*:\s*"([^"\\]{1,128})"/

/** A call that was tried: what is known of it, and the text it was read from. */
export function malformed(attempt: Broken, raw: string): ParsedCall {
  const { problem } = attempt
  const name = attempt.name ?? writtenName.exec(raw.slice(0, 512))?.[1]
  return name === undefined
    ? { kind: 'malformed', raw, problem }
    : { kind: 'malformed', name, raw, problem }
}

/** A call written as one JSON object with a name and arguments. */
export function callFromObject(object: JsonValue, keys: CallKeys): ParsedCall | Broken {
  const members = jsonMembers(object)
  const name = textMember(members, keys.name)
  if (name === undefined) return broken(`the call has no ${keys.name.join(' or ')}`)
  const key = keys.arguments.find(candidate => members.has(candidate))
  const call = callWithArguments(name, key === undefined ? undefined : members.get(key))
  const id = keys.id === undefined ? undefined : textMember(members, [keys.id])
  return call.kind === 'call' && id !== undefined ? { ...call, id } : call
}

/** A call written as an object whose only key is the tool's name. */
export function callFromEntry(object: JsonValue): ParsedCall | Broken {
  const members = [...jsonMembers(object)]
  const [name, value] = members[0] ?? []
  if (name === undefined || name === '' || members.length > 1) {
    return broken(`the call has ${members.length} keys where the tool's name alone belongs`)
  }
  return callWithArguments(name, value)
}

/** A call of a tool with JSON arguments: absent and null are none, a string is decoded once. */
export function callWithArguments(name: string, json: string | undefined): ParsedCall | Broken {
  const call = (text: string): ParsedCall => ({ kind: 'call', name, arguments: text })
  if (json === undefined || json === '' || json === 'null') return call('{}')
  if (json.startsWith('{')) return call(json)
  if (json.startsWith('"')) {
    const text = jsonText(json).trim()
    if (text === '') return call('{}')
    if (isJsonObject(text)) return call(text)
  }
  return broken('the arguments are not a JSON object', name)
}

/** A call from parameters whose values are JSON texts already; of equal names the last. */
export function callWithValues(name: string, values: ReadonlyMap<string, string>): ParsedCall {
  const members = [...values].map(([key, value]) => `${JSON.stringify(key)}: ${value}`)
  return { kind: 'call', name, arguments: `{${members.join(', ')}}` }
}

/** Whether the text can be a tool's name: no blanks, no quotes, no brackets. */
export const isName = (text: string): boolean => /^[^\s<>{}[\]()"'`,;|]{1,128}$/u.test(text)

function textMember(members: Map<string, string>, keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const json = members.get(key)
    if (json?.startsWith('"')) return jsonText(json) || undefined
  }
  return undefined
}
