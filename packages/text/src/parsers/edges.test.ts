import { describe, expect, it } from 'vitest'
import { withoutLayout, withoutLines } from './edges.ts'

const texts = (...raws: string[]) => raws.map(raw => ({ raw, isText: true }))
const mixed = (text: string, number: string) => [
  { raw: text, isText: true },
  { raw: number, isText: false },
]

describe('withoutLayout', () => {
  it('takes off what surrounds every value alike', () => {
    expect(withoutLayout(texts('\n a \n', '\n b \n'))).toEqual(['a', 'b'])
    expect(withoutLayout(mixed('\ta', '\t1'))).toEqual(['a', '1'])
    expect(withoutLayout(texts(' a'))).toEqual(['a'])
  })

  it('leaves what only one value has', () => {
    expect(withoutLayout(texts('a\n', 'b'))).toEqual(['a\n', 'b'])
    expect(withoutLayout(mixed('  a', '1'))).toEqual(['  a', '1'])
  })

  it('leaves what text often has of itself', () => {
    expect(withoutLayout(texts('print(1)\n'))).toEqual(['print(1)\n'])
    expect(withoutLayout(texts('    indented'))).toEqual(['    indented'])
    expect(withoutLayout(texts('old\n', 'new\n'))).toEqual(['old\n', 'new\n'])
  })

  it('leaves values that are nothing but blanks, unless they are layout as well', () => {
    expect(withoutLayout(texts('  ', 'a'))).toEqual(['  ', 'a'])
    expect(withoutLayout([...mixed('\t\n', '\t1\n')])).toEqual(['', '1'])
  })

  it('leaves spaces that are no layout in any format', () => {
    expect(withoutLayout(mixed('\n\u00a0a\n', '\n1\n'))).toEqual(['\u00a0a', '1'])
  })
})

describe('withoutLines', () => {
  it('takes one line break off each side', () => {
    expect(withoutLines('\n\na\n\n')).toBe('\na\n')
    expect(withoutLines('a')).toBe('a')
    expect(withoutLines('\n')).toBe('')
    expect(withoutLines('\n\n')).toBe('')
  })
})
