import { describe, expect, it } from 'vitest'
import { LiteralError, parseLiteral } from './literal.ts'
import { repr } from './repr.ts'

describe('parseLiteral', () => {
  it.each([
    ['None', 'None'],
    ['[True, False,]', '[True, False]'],
    ['()', '()'],
    ['(1)', '1'],
    ['(1,)', '(1,)'],
    ['1, 2', '(1, 2)'],
    ['{}', '{}'],
    ['set()', 'set()'],
    ['{1, 1.0, 2}', '{1, 2}'],
    ['{"a": 1, "b": [1.50, -3, +4], 1: 2, True: 5}', "{'a': 1, 'b': [1.5, -3, 4], 1: 5}"],
    ['0x_ff', '255'],
    ['0o17', '15'],
    ['0b101', '5'],
    ['1_000', '1000'],
    ['12345678901234567890', '12345678901234567890'],
    ['1e3', '1000.0'],
    ['.5', '0.5'],
    ['5.', '5.0'],
    ['-0.0', '-0.0'],
    [`'a' "b" r'\\n' u'\\u00e9'`, `'ab\\\\né'`],
    [`'\\x41\\101\\q\\\n\\U0001f389\\''`, `"AA\\\\q🎉'"`],
    ['"""a\n"b\\""""', `'a\\n"b"'`],
    ['[ # note\n 1, # more\n  2\n]  # end\n', '[1, 2]'],
    ['("a"\n "b")', "'ab'"],
  ])('reads %j', (text, expected) => {
    expect(repr(parseLiteral(text))).toBe(expected)
  })

  it.each([
    ['[1, x]', '"x" is not a literal, found "x" at line 1, column 5'],
    ['{\n "a": 1 2}', 'Expected "," or "}", found "2" at line 2, column 9'],
    ['"a\n"', 'The string has no end at line 1, column 1'],
    ['[1', 'Expected "," or "]", found the end of the text at line 1, column 3'],
    ['{[]: 1}', "unhashable type: 'list' at line 1, column 2"],
    ["b'x'", 'Strings with the prefix "b" are not literals here at line 1, column 1'],
    ["f'x'", 'Strings with the prefix "f" are not literals here at line 1, column 1'],
    ['1j', 'Complex numbers are not supported'],
    ['017', 'An integer cannot begin with 0'],
    ["'\\xzz'", 'The escape \\x cannot be read at line 1, column 2'],
    ['__import__("os")', '"__import__" is not a literal'],
    ['-"a"', 'Expected a number after -'],
    ['1 2', 'Expected the end of the literal'],
    ['{1: 2, 3}', 'Expected ":"'],
    ['"a"\n"b"', 'Expected the end of the literal, found "\\"" at line 2, column 1'],
  ])('refuses %j', (text, message) => {
    expect(() => parseLiteral(text)).toThrow(message)
  })

  it('bounds nesting', () => {
    expect(() => parseLiteral('['.repeat(100_000))).toThrow(LiteralError)
  })
})
