import { describe, expect, it } from 'vitest'
import { findPart, type OptionKind } from './part-options.ts'

const read = (kind: OptionKind, value: string) =>
  findPart('part', `one:of=${value}`, { one: { options: { of: kind } } }).values.of

describe('options of a named part', () => {
  it.each([
    ['count', '1', 1],
    ['count', '1e3', 1000],
    ['whole', '0', 0],
    ['several', '2', 2],
    ['amount', '0.5', 0.5],
    ['number', '-1.5', -1.5],
    ['share', '0', 0],
    ['share', '1', 1],
    ['text', 'word', 'word'],
    ['switch', 'false', false],
    [['loss', 'all'], 'all', 'all'],
  ] as const)('%s may be %s', (kind, text, value) => {
    expect(read(kind, text)).toBe(value)
  })

  it.each([
    ['count', '0', 'a whole number from 1 on'],
    ['count', '1.5', 'a whole number from 1 on'],
    ['count', '-1', 'a whole number from 1 on'],
    ['count', 'NaN', 'a whole number from 1 on'],
    ['count', 'Infinity', 'a whole number from 1 on'],
    ['count', '', 'a whole number from 1 on'],
    ['whole', '-1', 'a whole number from 0 on'],
    ['several', '1', 'a whole number from 2 on'],
    ['amount', '-0.1', 'a number from 0 on'],
    ['number', 'much', 'a number'],
    ['share', '1.1', 'a number from 0 to 1'],
    ['positive-share', '0', 'a share above 0 and up to 1'],
    ['text', '', 'a text'],
    ['switch', 'yes', 'true or false'],
    [['loss', 'all'], 'none', 'loss or all'],
  ] as const)('%s may not be %s', (kind, text, wanted) => {
    expect(() => read(kind, text)).toThrow(`part "one": of must be ${wanted}, not "${text}"`)
  })

  it('that it does not have, and variants, say which it has', () => {
    const parts = { one: { options: { of: 'count' }, variants: ['two'] } } as const
    expect(findPart('part', 'one:two,of=3', parts)).toMatchObject({ variant: 'two' })
    expect(() => findPart('part', 'on', parts)).toThrow('Known: one. Did you mean "one"?')
    expect(() => findPart('part', 'one:toString=1', parts)).toThrow('Known: of.')
    expect(() => findPart('part', 'one:tow', parts)).toThrow('has no variant "tow". Known: two.')
  })
})
