import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PythonValue } from '../python/value.ts'
import { fromJavaScript } from '../python/value.ts'
import { markForeign, markForeignWithin } from './foreign.ts'
import { compileTemplate } from './template.ts'

const RUNS = process.env.ESPALIER_SOAK ? 5000 : 150

/** The parts of a rendering that came from the wrapped text. */
function foreignParts(source: string, text: string): { text: string; parts: string[] } {
  const rendering = compileTemplate(source).render(new Map([['x', markForeign(text)]]))
  const parts = rendering.foreign.map(([start, end]) => rendering.text.slice(start, end))
  return { text: rendering.text, parts }
}

describe('markForeign', () => {
  it.each([
    ['<{{ x }}>', 'abc', '<abc>', ['abc']],
    ["{{ '<' + x + '>' ~ x }}", 'ab', '<ab>ab', ['ab', 'ab']],
    ['{{ x | trim }}|', '  ab ', 'ab|', ['ab']],
    ["{{ ('-' ~ x ~ '-').strip('-') }}", 'a-b', 'a-b', ['a-b']],
    ["{{ ('[' ~ x ~ ']')[0:3] }}", 'abcd', '[ab', ['ab']],
    ["{{ ('[' ~ x)[::-1] }}", 'ab', 'ba[', ['ba']],
    ["{{ ('1,' ~ x ~ ',2').split(',') | join('+') }}", 'a,b', '1+a+b+2', ['a', 'b']],
    ["{{ ('_' ~ x).replace('b', '<b>') }}", 'abc', '_a<b>c', ['a', 'c']],
    ["{{ 'a-b'.replace('-', x) }}", '*', 'a*b', ['*']],
    ["{{ ('x' ~ x) | upper }}", 'ab', 'XAB', ['AB']],
    ["{{ '%s|%5s' % (x, x) }}", 'ab', 'ab|   ab', ['ab', 'ab']],
    ["{{ '{}-{:>4}'.format(x, x) }}", 'ab', 'ab-  ab', ['ab', 'ab']],
    ['{% set y %}({{ x }}){% endset %}{{ y }}', 'ab', '(ab)', ['ab']],
    ['{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(x) }}', 'ab', '<ab>', ['ab']],
    ['{% filter upper %}q{{ x }}{% endfilter %}', 'ab', 'QAB', ['AB']],
    ['{% for c in x %}{{ c }}.{% endfor %}', 'a🎉', 'a.🎉.', ['a', '🎉']],
    ['{{ x[0] }}{{ x | last }}', 'a🎉', 'a🎉', ['a🎉']],
    ["{{ ('a\\n' ~ x) | indent }}", 'b\nc', 'a\n    b\n    c', ['b', 'c']],
    ["{{ x | replace('<', '[') | e }}", '<b>', '[b&gt;', ['b&gt;']],
    ['{{ {x: 1} | list | first }}', 'k', 'k', ['k']],
  ])('follows %s', (source, given, text, parts) => {
    expect(foreignParts(source, given)).toEqual({ text, parts })
  })

  it.each([
    ['<{{ [x, 1] | tojson }}>', 'a"b', '<["a\\"b", 1]>'],
    ['<{{ [x, 1] }}>', "it's", `<["it's", 1]>`],
    ["<{{ '%r' % x }}>", 'ab', "<'ab'>"],
  ])('marks all of what it cannot follow: %s', (source, given, text) => {
    expect(foreignParts(source, given)).toEqual({ text, parts: [text.slice(1, -1)] })
  })

  it('compares, looks up and counts like the text itself', () => {
    const source =
      "{{ x == 'ab' }}{{ x in ['ab'] }}{{ {'ab': 1}[x] }}{{ x | length }}{{ x is string }}{{ x < 'b' }}"
    expect(foreignParts(source, 'ab').text).toBe('TrueTrue12TrueTrue')
  })
})

describe('markForeignWithin', () => {
  it('wraps strings and keys that are asked for, and only those', () => {
    const value = fromJavaScript({ '<k>': ['<v>', 'w'], z: { y: 'no' } })
    const marked = markForeignWithin(value, text => (text.includes('<') ? [0, text.length] : []))
    const source = '{% for k, v in d.items() %}{{ k }}={{ v[0] }},{% endfor %}{{ d | length }}'
    const { text, foreign } = compileTemplate(source).render(new Map([['d', marked]]))
    expect(text).toBe('<k>=<v>,z=,2')
    expect(foreign.map(([start, end]) => text.slice(start, end))).toEqual(['<k>', '<v>'])
  })
})

const EXPRESSIONS = [
  'x',
  'x | trim | upper',
  "x.split('b')",
  "(x ~ 'b').split('b') | join('-')",
  'x[1:] ~ x[:1]',
  "x.replace('a', y)",
  '{x: y} | tojson',
  "'%s%s' % (y, x)",
  'x | title',
  'x.partition("b")[2]',
  "[y, x] | join('/')",
  'x | e',
  'x | reverse',
  '(x ~ y) | capitalize',
  "x.strip('ab ')",
  'x.center(9, "*")',
  "x | replace('b', '')",
  '[x, y] | sort | join',
  '{x: y}.items() | unique | join',
  'dict([((x, y), 1)]).keys() | map("join") | join',
  'x.splitlines()',
]

describe('marked renderings', () => {
  it('have the text of unmarked ones, and every marked character is found again', () => {
    // letters of an alphabet that no template writes stand for what came from outside
    const outside = fc.string({ unit: fc.constantFrom('가', '나', 'a', 'b', ' ', '\n', '"', '🎉') })
    fc.assert(
      fc.property(outside, outside, fc.constantFrom(...EXPRESSIONS), (x, y, expression) => {
        const template = compileTemplate(`<{{ ${expression} }}>`)
        const plain = new Map<string, PythonValue>([
          ['x', x],
          ['y', y],
        ])
        const { text, foreign } = template.render(
          new Map([...plain].map(([name, value]) => [name, markForeign(value as string)])),
        )
        expect(text).toBe(template.render(plain).text)
        const kept = foreign.map(([start, end]) => text.slice(start, end)).join('')
        expect(kept.match(/[가나]/g) ?? []).toEqual(text.match(/[가나]/g) ?? [])
        expect(kept).not.toMatch(/[<>]/)
      }),
      { seed: 11, numRuns: RUNS },
    )
  })
})
