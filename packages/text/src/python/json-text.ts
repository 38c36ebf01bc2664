// Strings as JSON has them.

/** What Python writes between a key and its value. */
export const PAIR = ': '

/** A string as `json.dumps` writes it with `ensure_ascii` off. */
export function encodeText(text: string): string {
  if (isWrittenPlainly(text)) return `"${text}"`
  const encoded = JSON.stringify(text)
  // JavaScript escapes lone surrogates, Python leaves them
  return LONE_SURROGATE.test(text) ? encoded.replace(ESCAPED_SURROGATE, unescapeSurrogate) : encoded
}

/** Keys come again and again; so many of them are kept, none longer than a name would be. */
const KEPT_KEYS = 1000
const LONGEST_KEPT = 40
const usualKeys = new Map<string, string>()

/** A key as `json.dumps` writes it with `ensure_ascii` off, and what stands behind it. */
export function encodeUsualKey(key: string): string {
  const known = usualKeys.get(key)
  if (known !== undefined) return known
  const encoded = encodeText(key) + PAIR
  if (key.length > LONGEST_KEPT) return encoded
  if (usualKeys.size >= KEPT_KEYS) usualKeys.clear()
  usualKeys.set(key, encoded)
  return encoded
}

/** Up to here looking at each unit takes less time than starting a pattern. */
const SHORT = 48
const NOT_PLAIN = /[^ !#-[\]-\ud7ff\ue000-\uffff]/

/** Whether a string needs nothing but quotes around it. */
function isWrittenPlainly(text: string): boolean {
  if (text.length > SHORT) return !NOT_PLAIN.test(text)
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x20 || unit === 0x22 || unit === 0x5c) return false
    if (unit >= 0xd800 && unit <= 0xdfff) return false
  }
  return true
}

const LONE_SURROGATE = /\p{Cs}/u
// an odd backslash before `ud8..dff` is an escape; pairs of backslashes are consumed first
const ESCAPED_SURROGATE = /\\(?:u(d[89a-f][0-9a-f]{2})|.)/g
const unescapeSurrogate = (whole: string, digits: string | undefined): string =>
  digits === undefined ? whole : String.fromCharCode(Number.parseInt(digits, 16))

/** A string as `json.dumps` writes it by default, everything but printable ASCII escaped. */
export function encodeAscii(text: string): string {
  const encoded = JSON.stringify(text)
  return NOT_ASCII.test(encoded) ? encoded.replace(NOT_ASCII_ALL, escapeUnit) : encoded
}

const NOT_ASCII = /[^\x20-\x7e]/
const NOT_ASCII_ALL = /[^\x20-\x7e]/g
const escapeUnit = (unit: string): string =>
  `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
