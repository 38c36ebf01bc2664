import { expect, it } from 'vitest'
import { validatorOf } from './json-schema.ts'
import { schemaPattern } from './schema-pattern.ts'

it('H6: a pattern that would take ages is given up, and the text does not match', () => {
  for (const pattern of [
    '^(a+)+$',
    '^(a|a)*b$',
    '^(?:a*)*b',
    '(x+x+)+y',
    '^(([a-z])+.)+[A-Z]([a-z])+$',
  ]) {
    const check = validatorOf({ type: 'string', pattern })
    const hostile = pattern.includes('x') ? 'x'.repeat(5000) : `${'a'.repeat(5000)}!`
    expect(check(hostile)).toHaveLength(1)
    expect(check(hostile)[0]).toContain('pattern')
  }
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
