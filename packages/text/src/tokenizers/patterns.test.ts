import { describe, expect, it } from 'vitest'
import { toLiteral, toRegExp } from './patterns.ts'

function matches(pattern: string, text: string): string[] {
  return text.match(toRegExp(pattern)) ?? []
}

// The expected matches are those of Oniguruma, through Hugging Face's tokenizers.
describe('a pattern matches as in Oniguruma', () => {
  it.each([
    ['braces and + repeat', '\\p{N}{1,3}+', '1234567', ['1234567']],
    ['possessive +', 'a++b|a', 'aaab aaa', ['aaab', 'a', 'a', 'a']],
    ['possessive ? and *', 'x?+xy|x*+x|z', 'xy xx z', ['z']],
    ['an atomic group', '(?>a|ab)c', 'abc ac', ['ac']],
    [
      'folding, with the long s',
      "(?i:'s|'re|[k-l])",
      "'ſ 'S 'rE K L m",
      ["'ſ", "'S", "'rE", 'K', 'L'],
    ],
    ['folding to the end', 'a(?i)b', 'aB AB', ['aB']],
    ['folding off', '(?i:a(?-i:b))', 'AB Ab', ['Ab']],
    ['line ends', '\\s++$', 'a  \nb  ', ['  ']],
    ['line starts', '^b', 'ab\nb', ['b']],
    ['a dot', 'a.', 'a\ra\u2028a\n', ['a\r', 'a\u2028']],
    ['the ends of the text', '\\Aa|a\\z', 'aaa', ['a', 'a']],
    ['white space', '\\s+', 'a\u0085b\ufeffc\u3000', ['\u0085', '\u3000']],
    ['an intersection', '[\\p{Lo}\\p{Ll}&&[^\\p{Han}]]+', 'a中ب中b', ['a', 'ب', 'b']],
    ['nested and negated classes', '[^a[b-c]\\]]+', 'xabc]y', ['x', 'y']],
    ['a script', '\\p{Han}+|\\p{^L}', 'a中1', ['中', '1']],
    ['code points', '[\\x{4e00}-\\u9fa5]+|\\x41', '中A', ['中', 'A']],
    ['escaped signs in a class', '[!-/\\-\\[\\\\\\]^_`{|}~]', 'a-[b', ['-', '[']],
    ['no Unicode newer than 16', '\\p{L}|\\P{L}', '\u{88f}', ['\u{88f}']],
    ['lazy and bounded', 'a{,2}?b|a{2}', 'aab aa', ['aab', 'aa']],
    ['lookaround', '(?<=a)b(?!c)|(?<!a)d(?=e)', 'ab abc de ade', ['b', 'd']],
  ])('%s', (_, pattern, text, expected) => {
    expect(matches(pattern, text)).toEqual(expected)
  })

  it('takes letters that came after Unicode 16 for unassigned', () => {
    expect(matches('\\p{L}', '\u{88f}\u{16ea0}a')).toEqual(['a'])
    expect(matches('[^\\p{L}]+', '\u{88f}a')).toEqual(['\u{88f}'])
  })
})

it.each([
  ['a)', 'a ")" that closes nothing'],
  ['(a', 'the end of the pattern inside a group'],
  ['[a', 'the end inside a class'],
  ['(?<name>a)', 'a kind of group that is not known here'],
  ['(a)\\1', 'an escape that is not known here'],
  ['\\bword', 'an escape that is not known here'],
  ['[[:alpha:]]', 'a POSIX bracket'],
  ['+a', '"+" with nothing before it'],
])('%s is refused', (pattern, problem) => {
  expect(() => toRegExp(pattern)).toThrow(`${problem}, at `)
})

it('a literal has no special characters', () => {
  expect('a.b|[😀'.match(toLiteral('.b|[😀'))).toEqual(['.b|[😀'])
})
