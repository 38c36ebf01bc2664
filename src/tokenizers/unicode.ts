// The reference uses tables of fixed Unicode versions, and Node has its own: characters assigned later
// are excluded, so that the same text gives the same tokens on every Node.

/** Assigned after Unicode 16, which the reference's regular expressions know. */
const AFTER_16 = `558 58b-58c 5c8-5c9 88f b53-b54 c5c cdc 1acf-1af0 208f 209d-209f 20c1-20c4 2b96
  2e60-2e63 a7ce-a7cf a7d2 a7d4 a7dd-a7f1 ab6c-ab6d fbc3-fbd2 fd90-fd91 fdc8-fdce 107bb-107bf
  10940-10959 10ec5-10efb 11b0a-11b67 11db0-11df1 1246f 12475-1247f 12550-12686 16ea0-16ed3
  16ff2-16ff6 187f8-187ff 18cd6-18cda 18d09-191d2 1b123-1b128 1b168 1ccfa-1ccfc 1ceba-1cefd
  1d127-1d128 1d1eb-1d1ff 1d250-1d281 1d6a6 1db00-1db1c 1df1f-1df24 1df2b-1dfff 1e6c0-1e6ff 1f1ae
  1f6d8-1f6d9 1f777-1f77a 1f7da-1f7db 1f7f1-1f7ff 1f8d0-1f8d8 1fa54-1fa57 1fa8a-1fa8e 1fac8-1facd
  1fadd 1faea-1faef 1faf9-1fafa 1fbfa 2b73a-2b73f 2b81e 2cea2-2cead 323b0-3fc3f`

/** Covers what Unicode 9, which the reference normalizes by, takes for plain unassigned letters. */
const INERT_IN_9 = `558 58b-58c 5c8-5c9 7fd 897-8d3 9fe c3c d3b-d3c eba 1715 1abf-1af0 1df6-1dfa
  209d-209f 32ff a7f1-a7f4 a82c ab69 105c9-107bf 10d24-10f85 11070 1133b 11382-113d0 1145e
  11839-11a99 11d42-1612f 16d63-1b126 1ccd6-1d128 1d250-1d281 1d6a6 1df95-1dfff 1e030-1e6f5 1f16c
  1fbf0-1fbf9`

const afterUnicode16 = toMembers(AFTER_16)

/** The members of a regular expression class, without its brackets: what normalizing leaves alone. */
export const inertInUnicode9 = toMembers(INERT_IN_9)

/** A regular expression class (flag v) without the code points that the reference does not know. */
export function pinned(set: string): string {
  return `[${set}--[${afterUnicode16}]]`
}

/** What Rust's regular expressions call a word character, as a class (flag v). */
export const wordClass = pinned('[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]')

function toMembers(ranges: string): string {
  return ranges.replace(/[0-9a-f]+/g, '\\u{$&}').replace(/\s+/g, '')
}

/** What a code point is to the split patterns; each has exactly one of these bits. */
export const UPPER = 1
export const LOWER = 2
/** A letter without case, or a modifier letter. */
export const CASELESS = 4
export const MARK = 8
export const NUMBER = 16
/** White space other than a line feed or a carriage return. */
export const SPACE = 32
export const NEWLINE = 64
export const OTHER = 128
export const LETTER = UPPER | LOWER | CASELESS

const CLASSES: readonly (readonly [RegExp, number])[] = [
  [/[\p{Lu}\p{Lt}]+/gu, UPPER],
  [/\p{Ll}+/gu, LOWER],
  [/[\p{Lm}\p{Lo}]+/gu, CASELESS],
  [/\p{M}+/gu, MARK],
  [/\p{N}+/gu, NUMBER],
  [/\p{White_Space}+/gu, SPACE],
  [/[\r\n]+/gu, NEWLINE],
  [new RegExp(`[${afterUnicode16}]+`, 'gu'), OTHER],
  // A capital-less glottal stop that Unicode 17 moved from lower case to caseless.
  [/\u0295/gu, LOWER],
]

/** Above this, only the variation selectors of plane 14 are anything but OTHER. */
const TABLE_END = 0x40000

let table: Uint8Array | undefined

/**
 * The kind of every code point below 0x40000, built on first use. High surrogates are 0: their
 * kind is that of the pair, see `astralKind`.
 */
export function kindTable(): Uint8Array {
  table ??= buildTable()
  return table
}

/** The kind of the surrogate pair that begins at `at`. */
export function astralKind(units: Uint16Array, at: number): number {
  const point = ((units[at]! - 0xd800) << 10) + (units[at + 1]! - 0xdc00) + 0x10000
  if (point < TABLE_END) return kindTable()[point]!
  return point >= 0xe0100 && point <= 0xe01ef ? MARK : OTHER
}

function buildTable(): Uint8Array {
  const kinds = new Uint8Array(TABLE_END).fill(OTHER)
  for (let plane = 0; plane < TABLE_END; plane += 0x10000) {
    const text = planeText(plane)
    const width = plane === 0 ? 1 : 2
    for (const [pattern, kind] of CLASSES) {
      for (const match of text.matchAll(pattern)) {
        const start = plane + match.index / width
        kinds.fill(kind, start, start + match[0].length / width)
      }
    }
  }
  return kinds.fill(0, 0xd800, 0xdc00)
}

/** All 65,536 code points of a plane in order; lone surrogates hold the place of surrogates. */
function planeText(plane: number): string {
  const parts: string[] = []
  for (let start = plane; start < plane + 0x10000; start += 4096) {
    parts.push(String.fromCodePoint(...Array.from({ length: 4096 }, (_, index) => start + index)))
  }
  return parts.join('')
}
