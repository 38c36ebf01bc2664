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
