import { expect, it } from 'vitest'
import {
  boxedIn,
  finalAnswerIn,
  isCloseTo,
  isExactAnswer,
  isNumberAnswer,
  isSameText,
  lastNumberIn,
} from './answer.ts'

it('reads the last balanced box, braces inside it included', () => {
  expect(boxedIn('so \\boxed{1} or \\boxed{\\frac{1}{2}}.')).toBe('\\frac{1}{2}')
  expect(boxedIn('\\boxed{\\{a\\}}')).toBe('\\{a\\}')
  expect(boxedIn('\\boxed{1')).toBeUndefined()
})

it('takes the box, then what follows ####, then the whole text as the final answer', () => {
  expect(finalAnswerIn('#### 3 but \\boxed{4}')).toBe('4')
  expect(finalAnswerIn('2 + 2\n#### 4\n')).toBe('4')
  expect(finalAnswerIn('  4 ')).toBe('4')
})

it.each([
  ['there are 12 pears', 12],
  ['1,234,567', 1234567],
  ['one of 1,2,3', 3],
  ['10,5', 5],
  ['-3.5', -3.5],
  ['−3', -3],
  ['3-1', 1],
  ['.5', 0.5],
  ['1e3', 1000],
  ['15kg', 15],
  ['$1,000.', 1000],
  ['x2 and v1.2', undefined],
  ['none', undefined],
  ['1e999', undefined],
])('reads the last number of %j as %s', (text, expected) => {
  expect(lastNumberIn(text)).toBe(expected)
})

it('reads a million separators in a moment, where more than linear time would take hours', () => {
  expect(lastNumberIn(`${'1,'.repeat(500_000)}x`)).toBeDefined()
  expect(lastNumberIn('1'.repeat(1_000_000))).toBeUndefined()
})

it('compares texts without case and spacing, numbers within a tolerance', () => {
  expect(isSameText(' No\n way ', 'no way')).toBe(true)
  expect(isSameText('no', 'now')).toBe(false)
  expect(isCloseTo(1_000_000.5, 1_000_000, 1e-6)).toBe(true)
  expect(isCloseTo(0.1, 0, 1e-6)).toBe(false)
})

it('compares with the answer of a task, or with any of several', () => {
  expect(isExactAnswer('so: \\boxed{Paris}', { answer: 'paris' })).toBe(true)
  expect(isExactAnswer('Rome', { answer: ['Paris', 'rome'] })).toBe(true)
  expect(isExactAnswer('Paris, I think', { answer: 'Paris' })).toBe(false)
  expect(isNumberAnswer('that makes 1,000.0 kg', { answer: 1000 })).toBe(true)
  expect(isNumberAnswer('1000 or 1001', { answer: '1000' })).toBe(false)
  expect(isNumberAnswer('none', { answer: 0 })).toBe(false)
})

it.each([[{}], [{ answer: null }], [{ answer: [] }], [undefined]])(
  'never scores without an answer to compare with: %j',
  data => {
    expect(() => isExactAnswer('', data)).toThrow(/no answer to compare with/)
  },
)

it('says where the answer of a task is not a number', () => {
  expect(() => isNumberAnswer('1', { answer: 'many' })).toThrow(/"many" has no number/)
})
