import { describe, expect, it } from 'vitest'
import { TemplateError, TemplateSyntaxError } from './error.ts'
import { compileTemplate } from './template.ts'

const limits = { steps: 1_000_000, characters: 400_000 }

const render = (source: string, variables: Record<string, unknown> = {}): string =>
  compileTemplate(source).render(variables, { limits }).text

const BIG = "{% set big = 'a' * 390000 %}{% for i in range(100000) %}"
const TREE =
  '{% set n = namespace(x=[]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}'

describe('the limits of a rendering', () => {
  it.each([
    '{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}',
    '{% for i in range(100000) %}{% for j in range(100000) %}{{ j }}{% endfor %}{% endfor %}',
    "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    '{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}',
    '{% set n = namespace(x=9) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}',
    `${BIG}{% if big | length %}{% endif %}{% endfor %}`,
    `${BIG}{% if big ~ 'a' == big ~ 'a' %}{% endif %}{% endfor %}`,
    `${BIG}{% if big.isalpha() %}{% endif %}{% endfor %}`,
    `${BIG}{% if 'b' in big %}{% endif %}{% endfor %}`,
    `${BIG}{{ big | first }}{% endfor %}`,
    `${BIG}{% set x = big[::-1] %}{% endfor %}`,
    `${BIG}{% set x = big | upper %}{% endfor %}`,
    `${BIG}{% set x = big.replace('a', 'b') %}{% endfor %}`,
    `${TREE}{{ n.x | tojson }}`,
    `${TREE}{{ n.x }}`,
    `${TREE}{{ n.x == n.x + [] }}`,
    `${TREE}{{ n.x | pprint }}`,
    `${TREE}{{ [n.x].index([n.x + []]) }}`,
    "{{ 'a' * 10 ** 9 }}",
    '{{ [0] * 10 ** 9 }}',
    '{{ 2 ** (10 ** 9) }}',
    '{{ range(10 ** 6) }}',
    "{{ '%1000000000d' % 5 }}",
    "{{ '%.1000000000f' % 5 }}",
    "{{ '{:1000000000}'.format(1) }}",
    "{{ 'x'.center(10 ** 9) }}",
    "{{ 'x' | indent(10 ** 9, true) }}",
    "{{ '\\t'.expandtabs(10 ** 9) }}",
    "{{ ('a' * 10000).replace('', 'b' * 1000) }}",
    '{{ [1] | batch(10 ** 9, 0) | list }}',
    '{{ [1] | slice(10 ** 9) | list }}',
    '{{ [[1]] | tojson(indent=10 ** 9) }}',
    "{{ ('a' * 390000) | wordwrap(1) }}",
    '{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}',
    '{% macro m(n) %}{% if n < 99 %}{{ m(n + 1) }}{{ m(n + 1) }}{% endif %}{% endmacro %}{{ m(0) }}',
    '{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}',
    '{% set n = namespace() %}{% set n.n = n %}{{ n }}',
  ])('stop %s', source => {
    expect(() => render(source)).toThrow(TemplateError)
  })

  it('[H6] a text that is almost a number is refused in linear time', () => {
    const almost = "{{ ('1' * 390000 ~ 'x')"
    expect(render(`${almost} | float }}`)).toBe('0.0')
    expect(render(`${almost} | int }}`)).toBe('0')
  })

  it('tell which limit was met', () => {
    expect(() => render("{{ 'a' * 2000000 }}")).toThrow('limits.characters, 400000')
    expect(() => render(`${TREE}{{ n.x }}`)).toThrow('more than 1000000 steps')
  })

  it.each([
    `{{ ${'('.repeat(5000)}1${')'.repeat(5000)} }}`,
    `{{ ${'-'.repeat(50_000)}1 }}`,
    `{{ ${'not '.repeat(50_000)}1 }}`,
    `{{ 1${' + 1'.repeat(50_000)} }}`,
    `{{ a${'.b'.repeat(50_000)} }}`,
    '{% if 1 %}'.repeat(5000) + '{% endif %}'.repeat(5000),
  ])('refuse templates that nest without end', source => {
    expect(() => compileTemplate(source)).toThrow(TemplateSyntaxError)
  })
})

describe('the sandbox', () => {
  it.each([
    "{{ ''.__class__ }}",
    '{{ [].constructor }}{{ {}.constructor }}{{ namespace().constructor }}{{ range.constructor }}',
    '{{ {}.__proto__ }}{{ [].__proto__ }}{{ 1.5.__proto__ }}',
    "{{ {}['__proto__'] }}{{ ''['constructor'] }}{{ [].length }}{{ 'abc'.length }}",
    '{{ constructor }}{{ toString }}{{ __proto__ }}{{ hasOwnProperty }}{{ process }}{{ globalThis }}',
    '{{ m.toString }}{{ m.prototype }}{{ m.behaviour }}{{ m.state }}',
  ])('gives nothing for %s', source => {
    expect(render(`{% macro m() %}{% endmacro %}${source}`)).toBe('')
  })

  it.each([
    ["{{ ''.__class__.__mro__ }}", 'SecurityError'],
    ['{{ [].append(1) }}', 'SecurityError'],
    ['{{ {}.update({}) }}', 'SecurityError'],
    ["{{ '{0.__class__.__mro__}'.format(1) }}", 'SecurityError'],
  ])('refuses %s', (source, type) => {
    expect(() => render(source)).toThrow(type)
  })

  it('keeps keys that mean something to JavaScript plain keys', () => {
    const variables = JSON.parse(
      '{"d": {"__proto__": 1, "constructor": 2, "toString": 3}}',
    ) as object
    expect(render('{{ d }}{{ d.constructor }}{{ d.valueOf }}', { ...variables })).toBe(
      "{'__proto__': 1, 'constructor': 2, 'toString': 3}2",
    )
  })

  it('does not let one rendering change the values of the next', () => {
    const messages = [{ role: 'user', content: 'hi' }]
    const template = compileTemplate('{% set messages = messages + [1] %}{{ messages | length }}')
    expect(template.render({ messages }).text).toBe('2')
    expect(template.render({ messages }).text).toBe('2')
    expect(messages).toHaveLength(1)
  })
})
