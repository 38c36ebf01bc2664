import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TemplateInput } from './foreign.ts'
import { HiddenContents, sourceOf } from './hidden.ts'
import { compileTemplate } from './template.ts'

const RUNS = process.env.ESPALIER_SOAK ? 2000 : 60
const MOST = 1000

/** What a template makes of a text it is not shown: undefined where it looks. */
function outlineOf(source: string, text: string) {
  const contents = new HiddenContents([text])
  const variables = new Map<string, TemplateInput>([['x', contents.hide(0, MOST)]])
  try {
    const { text: told, holes } = compileTemplate(source).render(variables)
    const { conditions } = contents
    return contents.isUnseen ? { conditions, read: sourceOf(told, holes) } : undefined
  } catch {
    return undefined
  }
}

const rendered = (source: string, text: string): string =>
  compileTemplate(source).render(new Map([['x', text]])).text

describe('a hidden text', () => {
  it.each([
    '<{{ x }}>',
    "{{ '<' + x + '>' ~ x }}",
    '{% set y %}({{ x }}){% endset %}{{ y }}{{ y | trim }}',
    '{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(x) }}',
    '{% filter trim %} {{ x }} {% endfilter %}',
    '{{ x | trim }}|{{ x.strip("a") }}|{{ x.rstrip() }}',
    '{{ x | tojson }}',
    '{{ x is string }}{{ x is defined }}{{ x is iterable }}{{ x is sequence }}{{ x is mapping }}',
    "{{ x | default('none') }}{{ x | string }}{{ x or 'none' }}",
    "{{ [x, 'b'] | join('-') }}{{ '-'.join([x]) }}",
    '{{ x == x }}{{ x is none }}{{ x == none }}',
  ])('is passed on unseen by %s', source => {
    const outline = outlineOf(source, 'first')
    for (const text of ['first', ' a\n', '"quoted" a', '🎉']) {
      expect(outline?.read([text])).toBe(rendered(source, text))
    }
  })

  it.each([
    ['{{ "yes" if x else "no" }}', ['a', 'b'], ['']],
    ['{{ "a" in x }}', ['a', 'cab'], ['', 'b']],
    ['{{ x.startswith("a") }}{{ x.endswith(("a", "b")) }}', ['a', 'ab'], ['b', 'ac']],
    ['{{ "a" in "<" ~ x ~ ">" }}', ['a'], ['b']],
    ['{{ x.strip().startswith("a") }}', ['a', ' a'], [' b']],
    ['{{ x.isspace() }}', [' ', '\n'], ['a']],
  ])('answers %s, which then holds for texts with the same answer', (source, same, others) => {
    const conditions = outlineOf(source, same[0]!)!.conditions
    const holds = (text: string): boolean =>
      conditions.every(({ read, question, answer }) => question(read([text])) === answer)
    expect(conditions.length).toBeGreaterThan(0)
    expect(same.filter(holds)).toEqual(same)
    expect(others.filter(holds)).toEqual([])
  })

  it.each([
    '{{ x | length }}',
    '{{ x[0] }}',
    '{% for c in x %}.{% endfor %}',
    '{{ x | upper }}',
    '{{ {x: 1} | length }}',
    "{{ x < 'b' }}",
    "{{ x is sameas 'a' }}",
    "{{ 'aab'.strip(x) }}",
    "{{ x in 'abc' }}",
    '{{ [x] }}',
    '{{ [x] | tojson }}',
    '{{ x | e }}',
    '{{ {"a": 1}[x] }}',
    "{% if x %}{{ x.split('a') | first }}{% endif %}",
  ])('is not there to be looked at by %s', source => {
    expect(outlineOf(source, 'a')).toBeUndefined()
  })
})

const EXPRESSIONS = [
  'x',
  "x ~ '!'",
  'x | trim',
  'x.lstrip()',
  'x | tojson',
  "x.replace('a', 'b')",
  'x | lower',
  'x[:2]',
  "x.split(' ') | last",
  "(x if 'a' in x else '-')",
  "(x or '-')",
  "('a' if x.startswith('a') else x)",
  "('same' if x == 'a' else x)",
  "('same' if x is sameas 'a' else x)",
  "('in' if x in ['a', ''] else x)",
  '(x | length) ~ x',
  "('even' if x | length is even else x)",
  "(x | default('-', true))",
  '(x | string | trim)',
  "('%s' % x)",
]

const text = fc.oneof(
  fc.constantFrom('', 'a', ' a', 'b a ', '\n', 'A', '"'),
  fc.string({ maxLength: 5, unit: 'grapheme' }),
)

describe('a text with holes', () => {
  it('is for every text with the same answers what the template makes of that text', () => {
    const source = fc
      .array(fc.constantFrom(...EXPRESSIONS), { minLength: 1, maxLength: 3 })
      .map(expressions => expressions.map(each => `{% set x = ${each} %}{{ x }}`).join('<'))
    let met = 0
    fc.assert(
      fc.property(source, text, fc.array(text, { maxLength: 6 }), (given, first, others) => {
        const outline = outlineOf(given, first)
        if (!outline) return
        for (const other of [first, ...others]) {
          const isSame = ({
            read,
            question,
            answer,
          }: (typeof outline.conditions)[number]): boolean => question(read([other])) === answer
          if (!outline.conditions.every(isSame)) continue
          met++
          expect(outline.read([other])).toBe(rendered(given, other))
        }
      }),
      { seed: 11, numRuns: RUNS * 5 },
    )
    expect(met).toBeGreaterThan(RUNS)
  })
})
