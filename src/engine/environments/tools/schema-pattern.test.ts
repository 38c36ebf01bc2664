import { expect, it } from 'vitest'
import { validatorOf } from './json-schema.ts'
import { schemaPattern } from './schema-pattern.ts'

it('H6: a pattern that would take ages is given up, and the text does not match', () => {
  for (const pattern of [
    '^(a+)+$',
    '^(a|a)*b$',
    '^(?:a*)*b',
    '(x+x+)+y',
    'x*y',
    '(x*)\\1y',
    '^(([a-z])+.)+[A-Z]([a-z])+$',
  ]) {
    const check = validatorOf({ type: 'string', pattern })
    const hostile = pattern.includes('x') ? 'x'.repeat(50_000) : `${'a'.repeat(50_000)}!`
    expect(check(hostile)).toHaveLength(1)
    expect(check(hostile)[0]).toContain('pattern')
  }
})

const doubled = Object.fromEntries(
  Array.from({ length: 40 }, (_, at) => {
    const next = { $ref: `#/$defs/a${at + 1}` }
    return [`a${at}`, { allOf: [next, next] }]
  }),
)

it.each([
  [
    'refers to itself twice, forty times',
    { $defs: { ...doubled, a40: {} }, $ref: '#/$defs/a0' },
    1,
  ],
  [
    'compares all with all',
    { uniqueItems: true },
    Array.from({ length: 1e5 }, (_, id) => ({ id })),
  ],
  [
    'finds four hundred problems in each part',
    { items: { anyOf: Array.from({ length: 400 }, (_, at) => ({ const: at })) } },
    Array.from({ length: 1e5 }, () => 'x'),
  ],
])('H6: a schema that %s is given up', (_, schema, value) => {
  expect(validatorOf(schema)(value)).toEqual(['takes too long to be checked by its schema'])
})

it('H6: every other text matches as it always did', () => {
  const cases = [
    ['^[a-z]+@[a-z]+\\.com$', 'a@b.com'],
    ['^\\d{4}-\\d{2}-\\d{2}$', '2026-11-15'],
    ['^(a+)+$', 'aaa'],
    ['^(?:[a-z]+ )*[a-z]+$', 'one two three'],
    ['\\p{Lu}+.*\\p{Lu}+', 'aBcD'],
  ] as const
  for (const [pattern, text] of cases) {
    for (const each of [text, '', 'x', `${text}!`]) {
      expect(schemaPattern(pattern, 'u').test(each)).toBe(new RegExp(pattern, 'u').test(each))
    }
  }
})

it('H6: patterns of one schema are told apart', () => {
  const properties = { a: { pattern: '^(?:a+b)+$' }, b: { pattern: '^(?:c+d)+$' } }
  const check = validatorOf({ type: 'object', properties })
  expect(check({ a: 'aab', b: 'cd' })).toEqual([])
  expect(check({ a: 'cd', b: 'aab' })).toHaveLength(2)
})
