import { isSpace } from '../../python/text/character.ts'
import { joinTexts, mapText, plain } from '../../python/text/text.ts'
import { itemTuples, requireDict } from '../dict.ts'
import { isIterable, toList, unpack } from '../iteration.ts'
import { isTrue } from '../operations.ts'
import type { Run } from '../run.ts'
import { spendText } from '../run.ts'
import { printable, softText } from '../show.ts'
import type { Method, MethodBody } from '../signature.ts'
import { method, signature } from '../signature.ts'
import { markLike, toMarkup } from '../text.ts'
import type { Text, Value } from '../value.ts'
import { isText, typeError, Undefined, valueError } from '../value.ts'
import { escapeHtml, forceEscape } from './html.ts'

/** Percent-encodes everything but what may stand in a URL. */
function quote(run: Run, value: Value, forQuery: boolean): Text {
  const quoted = mapText(printable(run, value), text =>
    encodeURIComponent(text.replace(/\p{Cs}/gu, '\ufffd'))
      .replace(/[!'()*]/g, each => `%${each.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll('%2F', forQuery ? '%2F' : '/')
      .replaceAll('%7E', '~'),
  )
  return forQuery ? mapText(quoted, text => text.replaceAll('%20', '+')) : quoted
}

const urlencode: MethodBody<Value> = (value, _, run) => {
  if (isText(value) || !isIterable(value)) return quote(run, value, false)
  const pairs = value instanceof Map ? itemTuples(value) : toList(run, value)
  const parts: Text[] = []
  for (const pair of pairs) {
    const [key, item] = unpack(run, pair, 2)
    if (parts.length > 0) parts.push('&')
    parts.push(quote(run, key as Value, true), '=', quote(run, item as Value, true))
  }
  return joinTexts(parts)
}

const xmlattr: MethodBody<Value> = (value, [autospace = true], run) => {
  const parts: Text[] = []
  for (const pair of itemTuples(requireDict(value))) {
    const [key, item] = unpack(run, pair, 2) as [Value, Value]
    if (item === null || item instanceof Undefined) continue
    const name = softText(run, key)
    if (/[\s/>=]/.test(plain(name))) {
      valueError(`Invalid character in attribute name: '${plain(name)}'`)
    }
    if (parts.length > 0 || isTrue(autospace)) parts.push(' ')
    parts.push(escapeHtml(name), '="', escapeHtml(softText(run, item)), '"')
  }
  return joinTexts(parts)
}

const escapeValue: MethodBody<Value> = (value, _, run) => {
  const text = escapeHtml(softText(run, value))
  spendText(run, plain(text).length)
  return text
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
}

function unescapeHtml(text: string): string {
  return text.replace(
    /&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,4}));/g,
    (all, ...groups) => {
      const [decimal, hexadecimal, name] = groups as (string | undefined)[]
      if (name !== undefined) return ENTITIES[name] ?? all
      const code = decimal === undefined ? Number.parseInt(hexadecimal ?? '', 16) : Number(decimal)
      return code <= 0x10ffff ? String.fromCodePoint(code) : all
    },
  )
}

function stripTags(text: string): string {
  let result = ''
  let offset = 0
  while (true) {
    const start = text.indexOf('<', offset)
    const [closing, from] = text.startsWith('<!--', start) ? ['-->', start + 4] : ['>', start]
    const end = start < 0 ? -1 : text.indexOf(closing, from)
    if (end < 0) break
    result += text.slice(offset, start)
    offset = end + closing.length
  }
  const words = [...(result + text.slice(offset))].map(each =>
    isSpace(each.charCodeAt(0)) ? ' ' : each,
  )
  return unescapeHtml(words.join('').replace(/ +/g, ' ').replace(/^ | $/g, ''))
}

const striptags: MethodBody<Value> = (value, _, run) => {
  const text = softText(run, value)
  return markLike(stripTags(plain(text)), text)
}

const urlize: MethodBody<Value> = () =>
  typeError('The filter urlize is not available: chat templates are not HTML.')

/** The filters that make or take HTML. */
export const HTML_FILTERS: readonly (readonly [string, Method])[] = [
  ['escape', method(signature('escape', '', false), escapeValue)],
  ['e', method(signature('e', '', false), escapeValue)],
  [
    'forceescape',
    method(signature('forceescape', ''), (value, _, run) => forceEscape(softText(run, value))),
  ],
  ['safe', method(signature('safe', ''), (value, _, run) => toMarkup(softText(run, value)))],
  ['striptags', method(signature('striptags', ''), striptags)],
  ['urlencode', method(signature('urlencode', ''), urlencode)],
  [
    'urlize',
    method(signature('urlize', 'trim_url_limit? nofollow? target? rel? extra_schemes?'), urlize),
  ],
  ['xmlattr', method(signature('xmlattr', 'autospace?'), xmlattr)],
]
