import { describe, expect, it } from 'vitest'
import { calculate } from './shared-tools.ts'

describe('calculate answers as Python would', () => {
  it.each([
    ['2 + 2', '4.0'],
    ['1/8', '0.12'],
    ['2.675 * 100 // 1', '267.0'],
    ['-2**2', '-4.0'],
    ['2**-1', '0.5'],
    ['6.0//0.1', '59.0'],
    ['-7//2', '-4.0'],
    ['0/-3', '-0.0'],
    ['10**20/10**19', '10.0'],
    ['10**400/10**399', '10.0'],
    ['0.1**-3', '1000.0'],
    ['00', '0.0'],
    ['007.5', '7.5'],
    ['10.**16', '1e+16'],
  ])('%s gives %s', (expression, expected) => {
    expect(calculate(expression)).toBe(expected)
  })
})

describe('calculate reports the errors of Python 3.11', () => {
  it.each([
    ['1/0', 'division by zero'],
    ['1/0.0', 'float division by zero'],
    ['1//0', 'integer division or modulo by zero'],
    ['1.0//0', 'float floor division by zero'],
    ['0**-1', '0.0 cannot be raised to a negative power'],
    ['10.0**400', "(34, 'Numerical result out of range')"],
    ['10**400', 'int too large to convert to float'],
    ['(-8)**.5', "float() argument must be a string or a real number, not 'complex'"],
    ['2(3)', "'int' object is not callable"],
    ['2(*3)', '2 argument after * must be an iterable, not int'],
    ['()*2.5', "can't multiply sequence by non-int of type 'float'"],
    ['()+1', 'can only concatenate tuple (not "int") to tuple'],
    ['1-()', "unsupported operand type(s) for -: 'int' and 'tuple'"],
    ['-...', "bad operand type for unary -: 'ellipsis'"],
    ['', 'invalid syntax (<string>, line 0)'],
    ['1 2', 'invalid syntax (<string>, line 1)'],
    ['(1 2)', 'invalid syntax. Perhaps you forgot a comma? (<string>, line 1)'],
    ['(1 2', "'(' was never closed (<string>, line 1)"],
    ['1 2 (3 4', 'invalid syntax (<string>, line 1)'],
    ['(2.', "'(' was never closed (<string>, line 1)"],
    ['1+)', "unmatched ')' (<string>, line 1)"],
    ['(*5)', 'cannot use starred expression here (<string>, line 1)'],
    ['(**5)', 'cannot use double starred expression here (<string>, line 1)'],
    ['5 % 2', 'invalid characters in expression'],
  ])('%s gives %s', (expression, expected) => {
    expect(calculate(expression)).toBe(`Error: ${expected}`)
  })
})

describe('calculate never runs away', () => {
  it.each(['9**9**9**9', `${'9**'.repeat(2000)}9`, '(9**99999)**99999'])(
    'refuses number %#',
    huge => {
      expect(calculate(huge)).toBe('Error: int too large to convert to float')
    },
  )

  it('takes long chains of signs and operators without recursion', () => {
    expect(calculate(`${'-'.repeat(50_000)}1`)).toBe('1.0')
    expect(calculate(`1${'+1'.repeat(50_000)}`)).toBe('50001.0')
    expect(calculate(`1${'**1'.repeat(20_000)}`)).toBe('1.0')
  })

  it('refuses deep parentheses as Python does', () => {
    expect(calculate(`${'('.repeat(201)}1${')'.repeat(201)}`)).toBe(
      'Error: too many nested parentheses (<string>, line 1)',
    )
    expect(calculate(`${'('.repeat(200)}1${')'.repeat(200)}`)).toBe('1.0')
  })
})
