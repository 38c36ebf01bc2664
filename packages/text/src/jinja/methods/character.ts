/** Whether a UTF-16 unit is a space to Python's `str.isspace`. */
export function isSpace(unit: number): boolean {
  if (unit <= 0x20) return unit === 0x20 || (unit >= 9 && unit <= 13) || unit >= 0x1c
  if (unit < 0x1680) return unit === 0x85 || unit === 0xa0
  return (
    unit === 0x1680 ||
    (unit >= 0x2000 && unit <= 0x200a) ||
    unit === 0x2028 ||
    unit === 0x2029 ||
    unit === 0x202f ||
    unit === 0x205f ||
    unit === 0x3000
  )
}

/** Whether Python's `splitlines` ends a line at this unit. */
export const isLineEnd = (unit: number): boolean =>
  (unit >= 10 && unit <= 13) ||
  (unit >= 0x1c && unit <= 0x1e) ||
  unit === 0x85 ||
  unit === 0x2028 ||
  unit === 0x2029

// characters whose title case is neither their upper case nor made from it
const TITLE: ReadonlyMap<string, string> = new Map(
  ['Ǆǅǆǅ', 'ǇǈǉǈǊ', 'Ǌǋǌǋ', 'Ǳǲǳǲ'].flatMap(([upper = '', title = '', lower = '']) => [
    [upper, title],
    [title, title],
    [lower, title],
  ]),
)

/** A character in title case. */
export function toTitle(character: string): string {
  const special = TITLE.get(character)
  if (special !== undefined) return special
  const [first = '', ...rest] = character.toUpperCase()
  return first + rest.join('').toLowerCase()
}

const CASED = /\p{Cased}/u

/** Every word with a capital and small letters behind it, a word being a run of cased letters. */
export function titleCase(text: string): string {
  let previous = false
  let result = ''
  for (const character of text) {
    result += previous ? character.toLowerCase() : toTitle(character)
    previous = CASED.test(character)
  }
  return result
}

/** The first character in title case, the rest in small letters. */
export function capitalize(text: string): string {
  const [first = ''] = text
  return toTitle(first) + text.slice(first.length).toLowerCase()
}

/** Small letters become capitals and capitals small. */
export const swapCase = (text: string): string =>
  Array.from(text, character =>
    /\p{Lu}/u.test(character) ? character.toLowerCase() : character.toUpperCase(),
  ).join('')

/** Text for comparison without case. */
export const caseFold = (text: string): string =>
  Array.from(text, character => character.toUpperCase().toLowerCase()).join('')

/** Whether the text has letters with case, all of them small. */
export const isLower = (text: string): boolean =>
  /\p{Lowercase}/u.test(text) && !/[\p{Uppercase}\p{Lt}]/u.test(text)

/** Whether the text has letters with case, all of them capital. */
export const isUpper = (text: string): boolean =>
  /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text)

/** Whether every word of the text begins with its only capital. */
export function isTitle(text: string): boolean {
  let previous = false
  let found = false
  for (const character of text) {
    const upper = /[\p{Uppercase}\p{Lt}]/u.test(character)
    const lower = /\p{Lowercase}/u.test(character)
    if ((upper && previous) || (lower && !previous)) return false
    previous = upper || lower
    found ||= previous
  }
  return found
}

const DIGIT =
  '\\p{Nd}\\u00b2\\u00b3\\u00b9\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468\\u2474-\\u247c\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788\\u278a-\\u2792'

const all = (characters: string): ((text: string) => boolean) => {
  const pattern = new RegExp(`^[${characters}]+$`, 'u')
  return text => pattern.test(text)
}

/** Python's questions about all characters of a text, by the name of their method. */
export const QUESTIONS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ['isalpha', all('\\p{L}')],
  ['isdecimal', all('\\p{Nd}')],
  ['isdigit', all(DIGIT)],
  ['isnumeric', all('\\p{N}零一二三四五六七八九十百千万億兆')],
  ['isalnum', all('\\p{L}\\p{N}')],
  ['isspace', text => text !== '' && [...text].every(each => isSpace(each.charCodeAt(0)))],
  ['isascii', text => !/[^\p{ASCII}]/u.test(text)],
  ['isprintable', text => !/[\p{C}\p{Z}]/u.test(text.replaceAll(' ', ''))],
  ['isidentifier', text => /^[\p{ID_Start}_][\p{ID_Continue}]*$/u.test(text)],
  ['islower', isLower],
  ['isupper', isUpper],
  ['istitle', isTitle],
])
