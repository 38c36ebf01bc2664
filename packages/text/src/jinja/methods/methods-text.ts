import { PythonTuple } from '../../python/value.ts'
import { fromEntries } from '../dict.ts'
import { escapeHtml } from '../filters/html.ts'
import { toList } from '../iteration.ts'
import { lookUp } from '../operations.ts'
import type { Run } from '../run.ts'
import { spendText } from '../run.ts'
import type { Method, MethodBody } from '../signature.ts'
import { method, signature } from '../signature.ts'
import {
  askText,
  changeHidden,
  characterOffsets,
  countCharacters,
  isMarkup,
  isNarrow,
  joinTexts,
  mapText,
  plain,
  sizeOf,
  sliceText,
  toMarkup,
} from '../text.ts'
import type { Text, Value } from '../value.ts'
import { isText, typeError, typeOf, valueError } from '../value.ts'
import { capitalize, caseFold, isSpace, QUESTIONS, swapCase, titleCase } from './character.ts'
import { padText } from './format-spec.ts'
import { requireInt, requireText } from './methods-split.ts'

type Side = 'left' | 'right' | 'both'

/** Takes spaces, or the characters given, away from the ends of a text. */
export function stripText(text: Text, wanted: Value | undefined, side: Side): Text {
  const isStripped =
    wanted === undefined || wanted === null ? isSpace : memberOf(requireText(wanted, 'strip arg'))
  const later = changeHidden(text, each => strip(each, isStripped, side) as string)
  return later ?? strip(text, isStripped, side)
}

function strip(text: Text, isStripped: (unit: number) => boolean, side: Side): Text {
  const source = plain(text)
  let start = 0
  let end = source.length
  if (side !== 'right') while (start < end && isStripped(source.charCodeAt(start))) start++
  if (side !== 'left') while (end > start && isStripped(source.charCodeAt(end - 1))) end--
  return start === 0 && end === source.length ? text : sliceText(text, start, end)
}

function memberOf(characters: string): (unit: number) => boolean {
  if (characters.length === 1) {
    const only = characters.charCodeAt(0)
    return unit => unit === only
  }
  const units = new Set(
    Array.from({ length: characters.length }, (_, at) => characters.charCodeAt(at)),
  )
  return unit => units.has(unit)
}

const stripBody =
  (side: Side): MethodBody<Text> =>
  (self, [wanted]) =>
    stripText(self, wanted, side)

/** Replaces up to `count` occurrences (all, if negative). */
export function replaceText(run: Run, text: Text, change: readonly [string, Text, number]): Text {
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

function joinReplaced(run: Run, text: Text, change: readonly [string, Text, number]): Text {
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
  return isMarkup(text) ? toMarkup(joined) : joined
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
  if (!isText(replacement)) {
    return typeError(`replace() argument 2 must be str, not ${typeOf(replacement as Value)}`)
  }
  const wanted = isMarkup(self) ? escapeHtml(replacement) : replacement
  return replaceText(run, self, [
    requireText(old, 'replace() argument 1'),
    wanted,
    requireInt(count, -1),
  ])
}

const join: MethodBody<Text> = (self, [iterable], run) => {
  const items = toList(run, iterable as Value)
  const parts: Text[] = []
  for (const [index, item] of items.entries()) {
    if (!isText(item)) {
      return typeError(`sequence item ${index}: expected str instance, ${typeOf(item)} found`)
    }
    if (index > 0) parts.push(self)
    parts.push(isMarkup(self) ? escapeHtml(item) : item)
  }
  const joined = joinTexts(parts)
  spendText(run, sizeOf(joined) + items.length)
  return isMarkup(self) ? toMarkup(joined) : joined
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
    const index = value === undefined || value === null ? fallback : requireInt(value, fallback)
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
      const test = (wanted: Value): boolean =>
        part !== undefined && isAffix(part, requireText(wanted, `${name} first arg`))
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
    return isMarkup(self) ? toMarkup(padded) : padded
  }

/** Python puts the odd space of a centred text on the left if the width is odd. */
export function center(run: Run, text: Text, width: number, fill = ' '): Text {
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
    return typeError(`'${typeOf(table as Value)}' object is not subscriptable`)
  const change = (character: string): string => {
    const found = lookUp(table, character.codePointAt(0) as number)
    if (found === undefined) return character
    if (typeof found === 'number') return String.fromCodePoint(found)
    return found === null ? '' : requireText(found, 'character mapping')
  }
  return mapText(self, text => Array.from(text, change).join(''))
}

const maketrans: MethodBody<Text> = (_, [from, to, dropped]) => {
  if (to === undefined) {
    if (!(from instanceof Map)) {
      return typeError('if you give only one argument to maketrans it must be a dict')
    }
    return fromEntries(
      Array.from(from, ([key, value]): [Value, Value] => [
        typeof key === 'string' ? (key.codePointAt(0) as number) : (key as Value),
        value,
      ]),
    )
  }
  const [source, target] = [[...requireText(from, 'x')], [...requireText(to, 'y')]]
  if (source.length !== target.length) {
    valueError('the first two maketrans arguments must have equal length')
  }
  const code = (character: string): number => character.codePointAt(0) as number
  const pairs = source.map((each, index): [Value, Value] => [
    code(each),
    code(target[index] as string),
  ])
  const drops = [...(dropped === undefined ? '' : requireText(dropped, 'z'))]
  return fromEntries([...pairs, ...drops.map((each): [Value, Value] => [code(each), null])])
}

const encode: MethodBody<Text> = () =>
  typeError('encode() is not available: templates have no bytes here.')

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
  changing('lower', text => text.toLowerCase()),
  changing('title', titleCase),
  changing('capitalize', capitalize),
  changing('swapcase', swapCase),
  changing('casefold', caseFold),
  ...[...QUESTIONS].map(asking),
]
