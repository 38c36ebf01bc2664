/** A string read from a text, or why and where reading failed. */
export type StringReading =
  | { readonly value: string; readonly end: number }
  | { readonly problem: string; readonly at: number }

const PREFIX = /[A-Za-z]*/y
const KNOWN_PREFIX = /^[ru]?$/i

/** Reads one quoted string of Python, its prefix included, from where the prefix begins. */
export function readStringLiteral(text: string, offset: number): StringReading {
  PREFIX.lastIndex = offset
  const prefix = PREFIX.exec(text)?.[0] ?? ''
  if (!KNOWN_PREFIX.test(prefix)) {
    return { problem: `Strings with the prefix "${prefix}" are not literals here`, at: offset }
  }
  const start = offset + prefix.length
  const character = text[start] as string
  const triple = text.startsWith(character.repeat(3), start)
  const quote = triple ? character.repeat(3) : character
  const begin = start + quote.length
  const end = findEnd(text, begin, quote)
  if (end === undefined) return { problem: 'The string has no end', at: offset }
  const body = text.slice(begin, end).replace(/\r\n?/g, '\n')
  if (/^r$/i.test(prefix)) return { value: body, end: end + quote.length }
  const value = unescapeString(body)
  if (typeof value !== 'string') return { problem: value.problem, at: begin + value.at }
  return { value, end: end + quote.length }
}

function findEnd(text: string, begin: number, quote: string): number | undefined {
  for (let offset = begin; offset < text.length; offset++) {
    const character = text[offset]
    if (character === '\\') offset++
    else if (character === '\n' && quote.length === 1) return undefined
    else if (text.startsWith(quote, offset)) return offset
  }
  return undefined
}

const ESCAPE =
  /\\(?:([abfnrtv\\'"\n])|([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([xuUN])|[\s\S])/g

const SHORT: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '\n': '',
}

/** Resolves Python's backslash escapes; an unknown escape stays as written, as in Python. */
export function unescapeString(body: string): string | { problem: string; at: number } {
  if (!body.includes('\\')) return body
  let failure: { problem: string; at: number } | undefined
  const value = body.replace(
    ESCAPE,
    (whole: string, ...groups: (string | number | undefined)[]) => {
      const [short, octal, two, four, eight, broken, at] = groups as string[]
      if (short !== undefined) return SHORT[short] as string
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8))
      const digits = two ?? four ?? eight
      if (digits === undefined && broken === undefined) return whole
      const code = Number.parseInt(digits ?? '', 16)
      if (code <= 0x10ffff)
        return code > 0xffff ? String.fromCodePoint(code) : String.fromCharCode(code)
      failure ??= { problem: `The escape ${whole} cannot be read`, at: Number(at) }
      return ''
    },
  )
  return failure ?? value
}
