import { argument } from '../arguments.ts'
import { call } from '../call.ts'
import {
  Module,
  type Named,
  Native,
  Opaque,
  PythonError,
  PythonTuple,
  unwrap,
  type Value,
} from '../values.ts'

const IGNORECASE = 2
const MULTILINE = 8
const DOTALL = 16

/** A pattern of Python as one of JavaScript. */
export function compilePattern(source: string, flags = 0): RegExp {
  let inline = flags
  const body = source
    .replace(/^\(\?([ims]+)\)/, (_, letters: string) => {
      if (letters.includes('i')) inline |= IGNORECASE
      if (letters.includes('m')) inline |= MULTILINE
      if (letters.includes('s')) inline |= DOTALL
      return ''
    })
    .replace(/\(\?P<(\w+)>/g, '(?<$1>')
    .replace(/\(\?P=(\w+)\)/g, '\\k<$1>')
    .replace(/\\A/g, '(?<![\\s\\S])')
    .replace(/\\Z/g, '(?![\\s\\S])')
  const letters = `g${inline & IGNORECASE ? 'i' : ''}${inline & MULTILINE ? 'm' : ''}${inline & DOTALL ? 's' : ''}`
  try {
    return new RegExp(endings(body, (inline & MULTILINE) !== 0), letters)
  } catch (error) {
    throw new PythonError('error', (error as Error).message)
  }
}

/** Outside of multiline, Python's `$` also stands before a line break at the very end. */
function endings(source: string, isMultiline: boolean): string {
  if (isMultiline) return source
  return source.replace(/\\[\s\S]|\[(?:\\[\s\S]|[^\]])*\]|\$/g, part =>
    part === '$' ? '(?=\\n?(?![\\s\\S]))' : part,
  )
}

function matchOf(found: RegExpExecArray): Value {
  const group = new Native('group', (given: readonly Value[]) => {
    const at = given[0] ?? 0
    const text = typeof at === 'string' ? found.groups?.[at] : found[Number(at)]
    return text ?? null
  })
  const groups = new Native(
    'groups',
    () => new PythonTuple(found.slice(1).map(text => text ?? null)),
  )
  return new Opaque(
    'Match',
    new Map<string, Value>([
      ['group', group],
      ['groups', groups],
    ]),
  )
}

type Use = (pattern: RegExp, text: string, rest: readonly Value[], named: Named) => Value

const uses: Readonly<Record<string, Use>> = {
  search: (pattern, text) => {
    const found = pattern.exec(text)
    return found ? matchOf(found) : null
  },
  match: (pattern, text) => {
    const found = new RegExp(`(?:${pattern.source})`, pattern.flags.replace('g', 'y')).exec(text)
    return found ? matchOf(found) : null
  },
  fullmatch: (pattern, text) => {
    const found = new RegExp(`^(?:${pattern.source})$`, pattern.flags.replace(/[gm]/g, '')).exec(
      text,
    )
    return found ? matchOf(found) : null
  },
  finditer: (pattern, text) => [...text.matchAll(pattern)].map(matchOf),
  findall: (pattern, text) =>
    [...text.matchAll(pattern)].map(found => (found.length > 1 ? (found[1] ?? '') : found[0])),
  split: (pattern, text, rest, named) =>
    splitText(pattern, text, Number(argument(rest, named, 0, 'maxsplit') ?? 0)),
}

function splitText(pattern: RegExp, text: string, limit: number): Value {
  const parts: Value[] = []
  let from = 0
  for (const found of text.matchAll(pattern)) {
    if (limit > 0 && parts.length >= limit) break
    parts.push(text.slice(from, found.index), ...found.slice(1).map(group => group ?? null))
    from = found.index + found[0].length
  }
  return [...parts, text.slice(from)]
}

function replaceIn(pattern: RegExp, other: Value, text: string): string {
  return text.replace(pattern, (...found: unknown[]) => {
    const groups = found as string[]
    if (typeof other !== 'string') {
      return call(other, [
        matchOf(
          Object.assign([...groups], { index: 0, input: text }) as unknown as RegExpExecArray,
        ),
      ]) as string
    }
    return other.replace(/\\(\d)|\\g<(\d+)>|\\n|\\t|\\\\/g, (whole, one?: string, two?: string) => {
      const place = one ?? two
      if (place !== undefined) return groups[Number(place)] ?? ''
      return whole === '\\n' ? '\n' : whole === '\\t' ? '\t' : '\\'
    })
  })
}

const textOf = (value: Value | undefined): string => unwrap(value as Value) as string

function toPattern(value: Value, flags: Value | undefined): RegExp {
  const known = value instanceof Opaque ? (value.members.get('pattern') as unknown) : undefined
  return known instanceof RegExp ? known : compilePattern(textOf(value), Number(flags ?? 0))
}

function compiled(pattern: RegExp): Opaque {
  const members = new Map<string, Value>([['pattern', pattern as unknown as Value]])
  for (const [name, use] of Object.entries(uses)) {
    members.set(
      name,
      new Native(name, ([text, ...rest], named) => use(pattern, textOf(text), rest, named)),
    )
  }
  members.set(
    'sub',
    new Native('sub', ([other, text]) => replaceIn(pattern, other as Value, textOf(text))),
  )
  return new Opaque('Pattern', members)
}

const functions: readonly (readonly [string, Value])[] = Object.entries(uses).map(([name, use]) => [
  name,
  new Native(name, ([pattern, text, ...rest], named) =>
    use(
      toPattern(pattern as Value, named.get('flags') ?? (name === 'split' ? undefined : rest[0])),
      textOf(text),
      rest,
      named,
    ),
  ),
])

/** Python's `re`, for patterns that mean the same in JavaScript. */
export const reModule = new Module(
  're',
  new Map<string, Value>([
    ...functions,
    [
      'sub',
      new Native('sub', ([pattern, other, text], named) =>
        replaceIn(toPattern(pattern as Value, named.get('flags')), other as Value, textOf(text)),
      ),
    ],
    [
      'compile',
      new Native('compile', ([pattern, flags], named) =>
        compiled(toPattern(pattern as Value, flags ?? named.get('flags'))),
      ),
    ],
    ['escape', new Native('escape', ([text]) => textOf(text).replace(/[^\w]/g, '\\$&'))],
    ['IGNORECASE', IGNORECASE],
    ['I', IGNORECASE],
    ['MULTILINE', MULTILINE],
    ['M', MULTILINE],
    ['DOTALL', DOTALL],
    ['error', null],
  ]),
)
