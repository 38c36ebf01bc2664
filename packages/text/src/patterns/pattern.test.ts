import { describe, expect, it } from 'vitest'
import { random, seedOf } from '../../../../src/base/math/random.ts'
import { LongTextError } from './matcher.ts'
import { linearPattern, nativePattern, type Pattern } from './pattern.ts'
import { LargePatternError } from './program.ts'

function spans(pattern: Pattern, text: string): (readonly [number, number])[] {
  const found: (readonly [number, number])[] = []
  pattern.forEach(text, (start, end) => found.push([start, end]))
  return found
}

const pieces = [
  'a',
  'b',
  'é',
  '\u{1f389}',
  '.',
  '[ab]',
  '[^a]',
  '\\s',
  '\\S',
  '\\w',
  '\\p{L}',
  '\n',
]
const marks = ['*', '+', '?', '{2}', '{1,3}', '{2,}', '*?', '+?', '??', '{0,2}?', '', '', '', '']
const groups = ['(?:', '(', '(?=', '(?!', '(?<=', '(?<!', '(?<name>']

/** A pattern that somebody might write, made of draws. */
function patternOf(draw: () => number, depth = 0): string {
  const one = (from: readonly string[]): string => from[Math.floor(draw() * from.length)]!
  const atom = (): string => {
    if (depth > 2 || draw() < 0.7) return one(pieces)
    if (draw() < 0.15) return one(['^', '$', '\\b', '\\B'])
    const open = one(groups.slice(0, depth === 0 ? undefined : -1))
    return `${open}${patternOf(draw, depth + 1)})`
  }
  const sequence = (): string =>
    Array.from({ length: 1 + Math.floor(draw() * 3) }, () => {
      const made = atom()
      return /^(?:\(\?<?[=!]|[$^]|\\[bB]$)/.test(made) ? made : made + one(marks)
    }).join('')
  return draw() < 0.3 ? `${sequence()}|${sequence()}` : sequence()
}

describe('H6: a pattern in linear time', () => {
  it('finds what the engine of JavaScript finds, whatever the pattern', () => {
    const counts = { native: 0, linear: 0, unknown: 0 }
    for (let seed = 0; seed < 1500; seed++) {
      const draw = random(seedOf('patterns', seed))
      const flags = ['gu', 'gv', 'giu', 'gmv', 'gsu'][seed % 5]!
      const source = patternOf(draw)
      const expression = compile(source, flags)
      const pattern = expression && linearPattern(expression)
      counts[pattern ? (pattern.isNative ? 'native' : 'linear') : 'unknown']++
      if (!expression || !pattern) continue
      for (let count = 0; count < 4; count++) {
        const text = Array.from(
          { length: Math.floor(draw() * 12) },
          () => ['a', 'b', 'A', 'é', ' ', '\n', '_', '\u{1f389}', '\ud83c'][Math.floor(draw() * 9)],
        ).join('')
        const told = `${expression} in ${JSON.stringify(text)}`
        const native = spans(nativePattern(expression), text)
        if (pattern.isNative) continue
        expect(spans(pattern, text), told).toEqual(native)
        expect(pattern.test(text), told).toBe(native.length > 0)
      }
    }
    expect(counts.linear).toBeGreaterThan(400)
    expect(counts.unknown).toBeLessThan(600)
  })

  it.each([
    ['(a+)+b', 'a'],
    ['(?:a|a)*b', 'a'],
    ['a*a*a*a*b', 'a'],
    ['a+x|a', 'a'],
    ['(?:(?=(?<atom1>a+))\\k<atom1>)x|a', 'a'],
    ['(?:a(?=a*x))+|a', 'a'],
    ['(?<=xa*)a|a', 'a'],
    ['(?:ab|a|b)*c', 'ab'],
    ['\\s+$', ' x '],
  ])('%s ends on a hostile text', (source, unit) => {
    // A hundred thousand characters: with time that grows with their square this would not end.
    const text = unit.repeat(100_000 / unit.length)
    const pattern = linearPattern(new RegExp(source, 'gu'))!
    expect(pattern.isNative).toBe(false)
    let found = 0
    pattern.forEach(text, (start, end) => (found += end - start))
    expect(found).toBeLessThanOrEqual(text.length)
  })

  it('leaves to the engine of JavaScript what that matches in linear time', () => {
    for (const source of ['a', 'ab|c', ' ?\\p{L}+', '\\p{N}{1,3}', ' ?[^a]+|\\s+', 'a(?!b)']) {
      expect(linearPattern(new RegExp(source, 'gu'))?.isNative, source).toBe(true)
    }
  })

  it('finds nothing between the halves of a character', () => {
    for (const source of ['$', '(?<!b)']) {
      const pattern = linearPattern(new RegExp(source, 'gmv'))!
      expect(
        spans(pattern, '\u{1f389}').every(([start]) => start !== 1),
        source,
      ).toBe(true)
    }
  })

  it('knows an atomic group as it is written for JavaScript', () => {
    expect(spans(linearPattern(/(?:(?=(?<atom1>a|ab))\k<atom1>)c/gu)!, 'abc ac')).toEqual([[4, 6]])
  })

  it('gives up on what no engine can promise', () => {
    for (const each of [/(a+)\1/u, /(?<x>a+)\k<x>/u, /a*b/, /(?:a*)*/u, /(?:a|)+/u]) {
      expect(linearPattern(each), String(each)).toBeUndefined()
    }
  })

  it('refuses patterns and texts without end', () => {
    expect(() => linearPattern(/(?:(?:a{1,200}){1,200}){1,200}/u)).toThrow(LargePatternError)
    const wide = linearPattern(/(?:a?b?c?d?e?f?g?h?x)*y/u)!
    expect(() => wide.test('x'.repeat(2 ** 24))).toThrow(LongTextError)
  })
})

function compile(source: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(source, flags)
  } catch {
    return undefined
  }
}
