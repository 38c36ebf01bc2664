import { asText, isText, typeName } from '../compare.ts'
import { padText } from '../format/specification.ts'
import type { Runtime } from '../runtime.ts'
import { spendText } from '../runtime.ts'
import type { Method, MethodBody } from '../signature.ts'
import { method, signature } from '../signature.ts'
import {
  capitalize,
  caseFold,
  isSpace,
  lowerCase,
  QUESTIONS,
  swapCase,
  titleCase,
} from '../text/character.ts'
import {
  admit,
  askText,
  changeLater,
  characterOffsets,
  countCharacters,
  isNarrow,
  joinTexts,
  likeText,
  mapText,
  plain,
  sizeOf,
  sliceText,
} from '../text/text.ts'
import { PythonTuple, type Text, type Value } from '../value.ts'
import {
  requireBound,
  requireInt,
  requireText,
  toText,
  typeError,
  valueError,
} from './arguments.ts'

type Side = 'left' | 'right' | 'both'

/** Takes spaces, or the characters given, away from the ends of a text. */
export function stripText(text: Text, wanted: Value | undefined, side: Side): Text {
  const isStripped =
    wanted === undefined || wanted === null ? isSpace : memberOf(requireText(wanted, 'strip arg'))
  const later = changeLater(text, each => strip(each, isStripped, side) as string)
  return later ?? strip(text, isStripped, side)
}

function strip(text: Text, isStripped: (code: number) => boolean, side: Side): Text {
  const source = plain(text)
  let start = 0
  let end = source.length
  if (side !== 'right') {
    while (start < end) {
      const code = source.codePointAt(start) as number
      if (!isStripped(code)) break
      start += code > 0xffff ? 2 : 1
    }
  }
  if (side !== 'left') {
    while (end > start) {
      const code = codeBefore(source, end)
      if (!isStripped(code)) break
      end -= code > 0xffff ? 2 : 1
    }
  }
  return start === 0 && end === source.length ? text : sliceText(text, start, end)
}

/** The code point that ends at an offset. */
function codeBefore(text: string, end: number): number {
  const unit = text.charCodeAt(end - 1)
  const isLow = unit >= 0xdc00 && unit <= 0xdfff && end > 1
  const code = isLow ? (text.codePointAt(end - 2) as number) : unit
  return code > 0xffff ? code : unit
}

function memberOf(characters: string): (code: number) => boolean {
  if (characters.length === 1) {
    const only = characters.charCodeAt(0)
    return code => code === only
  }
  const codes = new Set(Array.from(characters, each => each.codePointAt(0)))
  return code => codes.has(code)
}

const stripBody =
  (side: Side): MethodBody<Text> =>
  (self, [wanted]) =>
    stripText(self, wanted, side)

/** Replaces up to `count` occurrences (all, if negative). */
export function replaceText(
  run: Runtime,
  text: Text,
  change: readonly [string, Text, number],
): Text {
  const [old, replacement, count] = change
  const source = plain(text)
  if (count !== 0 && old !== '' && !source.includes(old)) return text
  if (typeof text === 'string' && typeof replacement === 'string' && count < 0 && old !== '') {
    const replaced = text.replaceAll(old, () => replacement)
    spendText(run, replaced.length)
    return replaced
  }
  return joinReplaced(run, text, change)
}

function joinReplaced(run: Runtime, text: Text, change: readonly [string, Text, number]): Text {
  const [old, replacement, count] = change
  const source = plain(text)
  const parts: Text[] = []
  let length = 0
  let start = 0
  for (const found of occurrences(source, old, count)) {
    parts.push(sliceText(text, start, found), replacement)
    start = found + old.length
    length += plain(replacement).length + 1
    if (length > run.limits.characters) spendText(run, length)
  }
  parts.push(sliceText(text, start, source.length))
  const joined = joinTexts(parts)
  spendText(run, plain(joined).length)
  return likeText(text, joined)
}

function* occurrences(source: string, old: string, count: number): Generator<number> {
  const limit = count < 0 ? Number.POSITIVE_INFINITY : count
  if (old === '') {
    yield* characterOffsets(source).slice(0, Math.min(limit, source.length + 1))
    return
  }
  let found = source.indexOf(old)
  for (let made = 0; found >= 0 && made < limit; made++) {
    yield found
    found = source.indexOf(old, found + old.length)
  }
}

const replace: MethodBody<Text> = (self, [old, replacement, count], run) => {
  const wanted = requireText(old, 'replace() argument 1')
  return replaceText(run, self, [
    wanted,
    admit(self, toText(replacement, 'replace() argument 2')),
    requireInt(count, -1),
  ])
}

const join: MethodBody<Text> = (self, [iterable], run) => {
  const parts: Text[] = []
  let count = 0
  for (const item of run.language.iterate(run, iterable as Value)) {
    const text = isText(item) ? item : asText(item)
    if (text === undefined) {
      return typeError(`sequence item ${count}: expected str instance, ${typeName(item)} found`)
    }
    if (count++ > 0) parts.push(self)
    parts.push(admit(self, text))
  }
  const joined = joinTexts(parts)
  spendText(run, sizeOf(joined) + count)
  return likeText(self, joined)
}

/** The window of characters that `start` and `end` leave, as UTF-16 offsets, or none. */
function window(
  text: string,
  start: Value | undefined,
  end: Value | undefined,
): readonly [number, number] | undefined {
  if (start === undefined && end === undefined) return [0, text.length]
  const offsets = isNarrow(text) ? undefined : characterOffsets(text)
  const length = offsets ? offsets.length - 1 : text.length
  const clamp = (value: Value | undefined, fallback: number): number => {
    const index = requireBound(value) ?? fallback
    return index < 0 ? Math.max(0, index + length) : index
  }
  const [from, to] = [clamp(start, 0), Math.min(length, clamp(end, length))]
  if (from > to) return undefined
  return offsets ? [offsets[from] as number, offsets[to] as number] : [from, to]
}

const affixBody =
  (isAffix: (text: string, affix: string) => boolean, name: string): MethodBody<Text> =>
  (self, [affix, start, end]) =>
    askText(self, text => {
      const range = window(text, start, end)
      const isWhole = range && range[0] === 0 && range[1] === text.length
      const part = range && (isWhole ? text : text.slice(...range))
      const test = (wanted: Value): boolean => {
        const edge = requireText(wanted, `${name} first arg`)
        return part !== undefined && isAffix(part, edge)
      }
      return affix instanceof PythonTuple ? affix.items.some(test) : test(affix as Value)
    })

const findBody =
  (last: boolean, raises: boolean): MethodBody<Text> =>
  (self, [wanted, start, end]) => {
    const text = plain(self)
    const needle = requireText(wanted, 'must be str')
    const range = window(text, start, end)
    const part = range ? text.slice(...range) : ''
    const found = range ? (last ? part.lastIndexOf(needle) : part.indexOf(needle)) : -1
    if (found >= 0) return countCharacters(text.slice(0, (range?.[0] ?? 0) + found))
    return raises ? valueError('substring not found') : -1
  }

const count: MethodBody<Text> = (self, [wanted, start, end]) => {
  const text = plain(self)
  const needle = requireText(wanted, 'must be str')
  const range = window(text, start, end)
  if (!range) return 0
  const part = text.slice(...range)
  return needle === '' ? countCharacters(part) + 1 : part.split(needle).length - 1
}

const justifyBody =
  (align: '<' | '>' | '^'): MethodBody<Text> =>
  (self, [width, fill], run) => {
    const character = fill === undefined ? ' ' : requireText(fill, 'fill character')
    if (countCharacters(character) !== 1) {
      typeError('The fill character must be exactly one character long')
    }
    const wanted = requireInt(width, 0)
    const padded =
      align === '^'
        ? center(run, self, wanted, character)
        : padText(run, self, { width: wanted, fill: character, align })
    return likeText(self, padded)
  }

/** Python puts the odd space of a centred text on the left if the width is odd. */
export function center(run: Runtime, text: Text, width: number, fill = ' '): Text {
  const missing = width - countCharacters(plain(text))
  if (missing <= 0) return text
  spendText(run, width)
  const left = (missing >> 1) + (missing & width & 1)
  return joinTexts([fill.repeat(left), text, fill.repeat(missing - left)])
}

const zfill: MethodBody<Text> = (self, [width], run) => {
  const text = plain(self)
  const missing = requireInt(width, 0) - countCharacters(text)
  if (missing <= 0) return self
  spendText(run, missing)
  const signed = text[0] === '-' || text[0] === '+' ? 1 : 0
  return joinTexts([
    sliceText(self, 0, signed),
    '0'.repeat(missing),
    sliceText(self, signed, text.length),
  ])
}

const expandtabs: MethodBody<Text> = (self, [tabsize], run) => {
  const size = requireInt(tabsize, 8)
  let column = 0
  return mapText(self, text => {
    let result = ''
    column = 0
    for (const character of text) {
      if (character === '\t') {
        const width = size > 0 ? size - (column % size) : 0
        spendText(run, width)
        result += ' '.repeat(width)
        column += width
      } else {
        result += character
        column = character === '\n' || character === '\r' ? 0 : column + 1
      }
    }
    return result
  })
}

const removeprefix: MethodBody<Text> = (self, [prefix]) => {
  const wanted = requireText(prefix, 'removeprefix() argument')
  const text = plain(self)
  return text.startsWith(wanted) ? sliceText(self, wanted.length, text.length) : self
}

const removesuffix: MethodBody<Text> = (self, [suffix]) => {
  const wanted = requireText(suffix, 'removesuffix() argument')
  const text = plain(self)
  return wanted !== '' && text.endsWith(wanted)
    ? sliceText(self, 0, text.length - wanted.length)
    : self
}

/** `translate` by a table from code points to texts, code points or None, which drops the character. */
const translate: MethodBody<Text> = (self, [table], run) => {
  spendText(run, plain(self).length)
  if (!(table instanceof Map))
    return typeError(`'${typeName(table as Value)}' object is not subscriptable`)
  const change = (character: string): string => {
    const key = run.language.find(table, character.codePointAt(0) as number)
    if (key === undefined) return character
    const found = table.get(key) as Value
    if (typeof found === 'number') return String.fromCodePoint(found)
    return found === null ? '' : requireText(found, 'character mapping')
  }
  return mapText(self, text => Array.from(text, change).join(''))
}

const codeOf = (character: string): number => character.codePointAt(0) as number

function tableOf(from: Map<Value, Value>): Map<Value, Value> {
  const table = new Map<Value, Value>()
  for (const [key, value] of from) {
    if (typeof key === 'string' && countCharacters(key) !== 1)
      valueError('string keys in translate table must be of length 1')
    if (typeof key !== 'string' && typeof key !== 'number')
      typeError('keys in translate table must be strings or integers')
    table.set(typeof key === 'string' ? codeOf(key) : key, value)
  }
  return table
}

const maketrans: MethodBody<Text> = (_, [from, to, dropped]) => {
  if (to === undefined) {
    if (from instanceof Map) return tableOf(from)
    return typeError('if you give only one argument to maketrans it must be a dict')
  }
  const [source, target] = [[...requireText(from, 'x')], [...requireText(to, 'y')]]
  if (source.length !== target.length) {
    valueError('the first two maketrans arguments must have equal length')
  }
  const table = new Map<Value, Value>()
  source.forEach((each, index) => {
    table.set(codeOf(each), codeOf(target[index] as string))
  })
  for (const each of dropped === undefined ? '' : requireText(dropped, 'z'))
    table.set(codeOf(each), null)
  return table
}

const encode: MethodBody<Text> = () =>
  typeError('encode() is not available: there are no bytes here.')

const changing = (name: string, change: (text: string) => string): [string, Method] => [
  name,
  method<Text>(signature(name, '', false), (self, _, run) => {
    spendText(run, plain(self).length)
    return mapText(self, change)
  }),
]

const asking = ([name, ask]: [string, (text: string) => boolean]): [string, Method] => [
  name,
  method<Text>(signature(name, '', false), self => askText(self, ask)),
]

const WINDOW = 'sub start? end?'

/** The methods of `str` that look into it or change it. */
export const TEXT_METHODS: readonly (readonly [string, Method])[] = [
  ['strip', method(signature('strip', 'chars?', false), stripBody('both'))],
  ['lstrip', method(signature('lstrip', 'chars?', false), stripBody('left'))],
  ['rstrip', method(signature('rstrip', 'chars?', false), stripBody('right'))],
  ['replace', method(signature('replace', 'old new count?', false), replace)],
  ['join', method(signature('join', 'iterable', false), join)],
  [
    'startswith',
    method(
      signature('startswith', 'prefix start? end?', false),
      affixBody((text, affix) => text.startsWith(affix), 'startswith'),
    ),
  ],
  [
    'endswith',
    method(
      signature('endswith', 'suffix start? end?', false),
      affixBody((text, affix) => text.endsWith(affix), 'endswith'),
    ),
  ],
  ['find', method(signature('find', WINDOW, false), findBody(false, false))],
  ['rfind', method(signature('rfind', WINDOW, false), findBody(true, false))],
  ['index', method(signature('index', WINDOW, false), findBody(false, true))],
  ['rindex', method(signature('rindex', WINDOW, false), findBody(true, true))],
  ['count', method(signature('count', WINDOW, false), count)],
  ['ljust', method(signature('ljust', 'width fillchar?', false), justifyBody('<'))],
  ['rjust', method(signature('rjust', 'width fillchar?', false), justifyBody('>'))],
  ['center', method(signature('center', 'width fillchar?', false), justifyBody('^'))],
  ['zfill', method(signature('zfill', 'width', false), zfill)],
  ['expandtabs', method(signature('expandtabs', 'tabsize?'), expandtabs)],
  ['translate', method(signature('translate', 'table', false), translate)],
  ['maketrans', method(signature('maketrans', 'x y? z?', false), maketrans)],
  ['encode', method(signature('encode', 'encoding? errors?'), encode)],
  ['removeprefix', method(signature('removeprefix', 'prefix', false), removeprefix)],
  ['removesuffix', method(signature('removesuffix', 'suffix', false), removesuffix)],
  changing('upper', text => text.toUpperCase()),
  changing('lower', lowerCase),
  changing('title', titleCase),
  changing('capitalize', capitalize),
  changing('swapcase', swapCase),
  changing('casefold', caseFold),
  ...[...QUESTIONS].map(asking),
]
