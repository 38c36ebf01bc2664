import { describe, expect, it } from 'vitest'
import { formatFloat, repr, str } from './repr.ts'
import { PythonFloat, PythonSet, PythonTuple } from './value.ts'

describe('formatFloat', () => {
  it.each([
    [1, '1.0'],
    [-0, '-0.0'],
    [0.1, '0.1'],
    [1e-4, '0.0001'],
    [1e-5, '1e-05'],
    [1.5e-7, '1.5e-07'],
    [123456789012345680, '1.2345678901234568e+17'],
    [9999999999999998, '9999999999999998.0'],
    [1e16, '1e+16'],
    [1e22, '1e+22'],
    [5e-324, '5e-324'],
    [1.7976931348623157e308, '1.7976931348623157e+308'],
    [Number.NaN, 'nan'],
    [Number.NEGATIVE_INFINITY, '-inf'],
  ])('writes %d as CPython does', (value, text) => {
    expect(formatFloat(value)).toBe(text)
  })
})

describe('repr', () => {
  it.each([
    ["it's", `"it's"`],
    [`it's "so"`, `'it\\'s "so"'`],
    ['a\\b\n\t\r\x00\x7f', "'a\\\\b\\n\\t\\r\\x00\\x7f'"],
    ['é中🎉', "'é中🎉'"],
    [
      '\xa0\xad\u200b\u3000\ue000\u{e0001}\ud800',
      "'\\xa0\\xad\\u200b\\u3000\\ue000\\U000e0001\\ud800'",
    ],
  ])('quotes %j', (text, expected) => {
    expect(repr(text)).toBe(expected)
  })

  it('writes containers', () => {
    const value = new Map<string, never>([
      ['a', [null, true, 1, new PythonFloat(1), 12345678901234567890n]],
      ['t', new PythonTuple([1])],
      ['s', new PythonSet([])],
      ['u', new PythonTuple(['x', new PythonSet([2])])],
    ] as never)
    expect(repr(value)).toBe(
      "{'a': [None, True, 1, 1.0, 12345678901234567890], 't': (1,), 's': set(), 'u': ('x', {2})}",
    )
  })

  it('leaves a bare string alone in str', () => {
    expect(str("it's")).toBe("it's")
    expect(str(["it's", 0.5])).toBe(`["it's", 0.5]`)
  })
})
