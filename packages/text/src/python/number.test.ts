import { describe, expect, it } from 'vitest'
import { compare, compareText, equals, findKey, storeItem } from './compare.ts'
import { arithmetic, roundFloat, roundToInt, toFixedExactly } from './number.ts'
import { repr } from './repr.ts'
import type { PythonDict } from './value.ts'
import { PythonFloat, PythonTuple } from './value.ts'

const float = (value: number): PythonFloat => new PythonFloat(value)

describe('arithmetic', () => {
  it.each([
    ['//', -7, 2, '-4'],
    ['%', -7, 3, '2'],
    ['%', 7, -3, '-2'],
    ['%', float(-7), 3, '2.0'],
    ['//', float(-0.5), 1, '-1.0'],
    ['//', float(-0), float(1), '-0.0'],
    ['/', 6, 3, '2.0'],
    ['/', 10n ** 20n, 7, '1.4285714285714287e+19'],
    ['+', 9007199254740991, 1, '9007199254740992'],
    ['*', 123456789, 987654321987, '121932631234487119743'],
    ['-', 10n ** 20n, 10n ** 20n - 1n, '1'],
    ['**', 2, 100, '1267650600228229401496703205376'],
    ['**', 2, -1, '0.5'],
    ['**', 2, float(0.5), '1.4142135623730951'],
  ] as const)('computes %s of %o and %o', (operation, left, right, expected) => {
    expect(repr(arithmetic(operation, left, right))).toBe(expected)
  })

  it('raises where Python raises', () => {
    expect(() => arithmetic('/', 1, 0)).toThrow('division by zero')
    expect(() => arithmetic('//', 1, 0)).toThrow('integer division or modulo by zero')
    expect(() => arithmetic('%', float(1), float(0))).toThrow('float modulo')
    expect(() => arithmetic('**', 10, 10 ** 9)).toThrow('too many digits')
  })
})

describe('rounding', () => {
  it('rounds half to even on the exact value', () => {
    expect(roundFloat(2.675, 2)).toBe(2.67)
    expect(roundFloat(0.125, 2)).toBe(0.12)
    expect(roundFloat(-1234.5, -2)).toBe(-1200)
    expect([0.5, 1.5, 2.5, -0.5].map(roundToInt)).toEqual([0, 2, 2, 0])
    expect(() => roundToInt(Number.NaN)).toThrow('cannot convert float NaN to integer')
  })

  it('writes fixed decimals from the exact value', () => {
    expect(toFixedExactly(2.675, 2)).toBe('2.67')
    expect(toFixedExactly(1e22, 1)).toBe('10000000000000000000000.0')
    expect(toFixedExactly(-0, 0)).toBe('-0')
  })
})

describe('comparison', () => {
  it('treats equal numbers of different types as one', () => {
    expect(equals(1, float(1))).toBe(true)
    expect(equals(true, 1)).toBe(true)
    expect(equals([1, new Map([['a', 2n]])], [float(1), new Map([['a', 2]])])).toBe(true)
    expect(equals('1', 1)).toBe(false)
    const dict: PythonDict = new Map([[1, 'one']])
    storeItem(dict, true, 'uno')
    expect(repr(dict)).toBe("{1: 'uno'}")
    expect(findKey(dict, float(1))).toBe(1)
    expect(findKey(new Map([[new PythonTuple([1, 2]), 0]]), new PythonTuple([1, 2]))).toBeDefined()
  })

  it('orders texts by code points', () => {
    expect(compareText('🎉', '\uffff')).toBeGreaterThan(0)
    expect(compareText('\ud800', '\ue000')).toBeLessThan(0)
    expect(compareText('a', 'ab')).toBeLessThan(0)
  })

  it('orders sequences item by item and refuses mixed types', () => {
    expect(compare('<', [1, 2], [1, 3])).toBe(true)
    expect(compare('>=', new PythonTuple([1]), new PythonTuple([]))).toBe(true)
    expect(() => compare('<', 1, 'a')).toThrow(
      "'<' not supported between instances of 'int' and 'str'",
    )
    expect(() => compare('<', null, null)).toThrow("'NoneType' and 'NoneType'")
  })
})
