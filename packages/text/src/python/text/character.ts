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
const TITLE: ReadonlyMap<string, string> = new Map([
  ['ŉ', 'ʼN'],
  ...['Ǆǅǆǅ', 'Ǉǈǉǈ', 'Ǌǋǌǋ', 'Ǳǲǳǲ'].flatMap(([upper = '', title = '', lower = '']) =>
    [upper, title, lower].map((each): [string, string] => [each, title]),
  ),
])

const GEORGIAN = /[\u10d0-\u10ff]/

// Greek letters with a small iota below, which a capital keeps
const WITH_IOTA = /[\u1f80-\u1faf\u1fb3\u1fbc\u1fc3\u1fcc\u1ff3\u1ffc]/

function withIota(character: string): string {
  const code = character.charCodeAt(0)
  const isRow = code < 0x1fb0
  return String.fromCharCode(isRow ? code | 8 : (code & 0xfff0) | 0xc)
}

/** A character in title case. */
function toTitle(character: string): string {
  if (GEORGIAN.test(character)) return character
  const special = TITLE.get(character)
  if (special !== undefined) return special
  if (WITH_IOTA.test(character)) return withIota(character)
  const [first = '', ...rest] = character.toUpperCase()
  // an iota below a Greek letter stays below
  return first + rest.join('').toLowerCase().replaceAll('ι', '\u0345')
}

const AFTER_CASED = /\p{Cased}\p{Case_Ignorable}*$/u
const BEFORE_CASED = /^\p{Case_Ignorable}*\p{Cased}/u
/** As far as a letter with case is looked for on either side of a sigma. */
const NEAR = 64

/** The small letter of the character at an offset: a sigma is another one at the end of a word. */
function lowerAt(text: string, offset: number, character: string): string {
  if (character !== 'Σ') return character.toLowerCase()
  const before = text.slice(Math.max(0, offset - NEAR), offset)
  const after = text.slice(offset + 1, offset + 1 + NEAR)
  return AFTER_CASED.test(before) && !BEFORE_CASED.test(after) ? 'ς' : 'σ'
}

/** All letters small. */
export const lowerCase = (text: string): string => text.toLowerCase()

/** Every word with a capital and small letters behind it, a word being a run of cased letters. */
export function titleCase(text: string): string {
  let previous = false
  let result = ''
  let offset = 0
  for (const character of text) {
    result += previous ? lowerAt(text, offset, character) : toTitle(character)
    previous = isCased(character)
    offset += character.length
  }
  return result
}

/** The first character in title case, the rest in small letters. */
export function capitalize(text: string): string {
  const [first = ''] = text
  const rest = text.slice(first.length)
  if (!rest.includes('Σ')) return toTitle(first) + rest.toLowerCase()
  let result = toTitle(first)
  let offset = first.length
  for (const character of rest) {
    result += lowerAt(text, offset, character)
    offset += character.length
  }
  return result
}

/** Small letters become capitals and capitals small. */
export function swapCase(text: string): string {
  let result = ''
  let offset = 0
  for (const character of text) {
    result += UPPER.test(character)
      ? lowerAt(text, offset, character)
      : LOWER.test(character)
        ? character.toUpperCase()
        : character
    offset += character.length
  }
  return result
}

// Cherokee is compared by its capitals, and a small letter without a dot is none with one
const FOLDED_UPWARDS = /[\u13a0-\u13f5\u13f8-\u13fd\uab70-\uabbf]/

/** Text for comparison without case. */
export const caseFold = (text: string): string =>
  Array.from(text, character => {
    if (FOLDED_UPWARDS.test(character)) return character.toUpperCase()
    if (character === 'ı') return character
    return character === 'ẞ' ? 'ss' : character.toUpperCase().toLowerCase()
  }).join('')

// as Unicode 14 has it; later versions call one more of these small, and others no more
const LOWER = /(?![\u10fc\ua7f2-\ua7f4\uab69])[\p{Lowercase}\u0295]/u
const UPPER = /\p{Uppercase}/u
const TITLED = /[\p{Uppercase}\p{Lt}]/u

const isCased = (character: string): boolean => LOWER.test(character) || TITLED.test(character)

/** Whether the text has letters with case, all of them small. */
export const isLower = (text: string): boolean => LOWER.test(text) && !TITLED.test(text)

/** Whether the text has letters with case, all of them capital. */
export const isUpper = (text: string): boolean =>
  UPPER.test(text) && !LOWER.test(text) && !/\p{Lt}/u.test(text)

/** Whether every word of the text begins with its only capital. */
function isTitle(text: string): boolean {
  let previous = false
  let found = false
  for (const character of text) {
    const upper = TITLED.test(character)
    const lower = LOWER.test(character)
    if ((upper && previous) || (lower && !previous)) return false
    previous = upper || lower
    found ||= previous
  }
  return found
}

// digits that count in no system of places
const DIGIT =
  '\\p{Nd}' +
  '\\u00b2-\\u00b3\\u00b9\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089' +
  '\\u2460-\\u2468\\u2474-\\u247c\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff' +
  '\\u2776-\\u277e\\u2780-\\u2788\\u278a-\\u2792\\u{10a40}-\\u{10a43}' +
  '\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}'

// ideographs that stand for numbers
const NUMERIC =
  '\\p{N}' +
  '\\u3405\\u3483\\u382a\\u3b4d\\u4e00\\u4e03\\u4e07\\u4e09\\u4e5d\\u4e8c\\u4e94\\u4e96' +
  '\\u4ebf-\\u4ec0\\u4edf\\u4ee8\\u4f0d\\u4f70\\u5104\\u5146\\u5169\\u516b\\u516d' +
  '\\u5341\\u5343-\\u5345\\u534c\\u53c1-\\u53c4\\u56db\\u58f1\\u58f9\\u5e7a' +
  '\\u5efe-\\u5eff\\u5f0c-\\u5f0e\\u5f10\\u62fe\\u634c\\u67d2\\u6f06\\u7396\\u767e' +
  '\\u8086\\u842c\\u8cae\\u8cb3\\u8d30\\u9621\\u9646\\u964c\\u9678\\u96f6\\uf96b\\uf973' +
  '\\uf978\\uf9b2\\uf9d1\\uf9d3\\uf9fd\\u{20001}\\u{20064}\\u{200e2}\\u{20121}' +
  '\\u{2092a}\\u{20983}\\u{2098c}\\u{2099c}\\u{20aea}\\u{20afd}\\u{20b19}\\u{22390}' +
  '\\u{22998}\\u{23b1b}\\u{2626d}\\u{2f890}'

const all = (characters: string): ((text: string) => boolean) => {
  const pattern = new RegExp(`^[${characters}]+$`, 'u')
  return text => pattern.test(text)
}

// characters that are no longer identifiers once they are normalized
const NOT_FIRST =
  /^[\u037a\u0e33\u0eb3\u309b\u309c\ufc5e-\ufc63\ufdfa\ufdfb\ufe70\ufe72\ufe74\ufe76\ufe78\ufe7a\ufe7c\ufe7e\uff9e\uff9f]/
const NOT_INSIDE =
  /\u200c|\u200d|[\u037a\u309b\u309c\u30fb\ufc5e-\ufc63\ufdfa\ufdfb\ufe70\ufe72\ufe74\ufe76\ufe78\ufe7a\ufe7c\ufe7e\uff65]/

const isIdentifier = (text: string): boolean =>
  /^[\p{ID_Start}_]\p{ID_Continue}*$/u.test(text) && !NOT_FIRST.test(text) && !NOT_INSIDE.test(text)

/** Python's questions about all characters of a text, by the name of their method. */
export const QUESTIONS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ['isalpha', all('\\p{L}')],
  ['isdecimal', all('\\p{Nd}')],
  ['isdigit', all(DIGIT)],
  ['isnumeric', all(NUMERIC)],
  ['isalnum', all(`\\p{L}${NUMERIC}`)],
  ['isspace', text => text !== '' && [...text].every(each => isSpace(each.charCodeAt(0)))],
  ['isascii', text => !/[^\p{ASCII}]/u.test(text)],
  ['isprintable', text => !/[\p{C}\p{Z}]/u.test(text.replaceAll(' ', ''))],
  ['isidentifier', isIdentifier],
  ['islower', isLower],
  ['isupper', isUpper],
  ['istitle', isTitle],
])
