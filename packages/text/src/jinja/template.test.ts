import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../python/json.ts'
import type { PythonDict, PythonValue } from '../python/value.ts'
import { PythonFloat } from '../python/value.ts'
import { TemplateError, TemplateSyntaxError } from './error.ts'
import { compileTemplate } from './template.ts'

const clock = (): Date => new Date(2026, 10, 5, 3, 4, 9, 120)

const render = (source: string, variables: Record<string, unknown> = {}): string =>
  compileTemplate(source).render(variables, { clock }).text

/** Answers of Jinja2 3.1.6 in the environment of transformers 5.17, one template per line. */
const [first = '', ...corners] = readFileSync(new URL('./corners.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
const variables = (parseJson(first) as PythonDict).get('variables') as Map<string, PythonValue>

/** Exceptions that Python's compiler or Jinja's raise before rendering. */
const AT_COMPILATION = new Set(['TemplateSyntaxError', 'TemplateAssertionError', 'SyntaxError'])

function answer(source: string): { text: string } | { raises: string } {
  try {
    return { text: compileTemplate(source).render(variables, { clock }).text }
  } catch (error) {
    if (error instanceof TemplateSyntaxError) return { raises: 'TemplateSyntaxError' }
    if (error instanceof TemplateError) return { raises: error.type }
    throw error
  }
}

describe('against Jinja2', () => {
  it.each(
    corners.map(line => JSON.parse(line) as { template: string; text?: string; raises?: string }),
  )('answers $template', ({ template, text, raises }) => {
    if (text !== undefined) expect(answer(template)).toEqual({ text })
    else {
      const type = AT_COMPILATION.has(raises ?? '') ? 'TemplateSyntaxError' : raises
      expect(answer(template)).toEqual({ raises: type })
    }
  })
})

describe('variables', () => {
  it('come as plain data or as Python values', () => {
    expect(
      render('{{ a }} {{ b.c[1] }} {{ none_is }}', { a: 1.5, b: { c: [1, null] }, none_is: null }),
    ).toBe('1.5 None None')
    const given = new Map<string, PythonValue>([['x', new PythonFloat(1)]])
    expect(compileTemplate('{{ x }}').render(given).text).toBe('1.0')
  })

  it('leave out what is undefined, and hide globals of the same name', () => {
    expect(render('{{ a is defined }}{{ range }}', { a: undefined, range: 7 })).toBe('False7')
  })
})

describe('errors', () => {
  it('name line and column of a template that cannot be compiled', () => {
    expect(() => compileTemplate('a\n  {{ 1 + }}')).toThrow(
      "unexpected 'end of print statement' (template line 2, column 10)",
    )
    expect(() => compileTemplate('{% if x %}\n{% endfor %}')).toThrow(TemplateSyntaxError)
  })

  it('name the exception, line and column of a rendering that raised', () => {
    const error = (() => {
      try {
        render('a\n{% for m in [1] %}\n  {{ m.x.y }}\n{% endfor %}')
      } catch (caught) {
        return caught as TemplateError
      }
      return undefined
    })()
    expect(error).toBeInstanceOf(TemplateError)
    expect(error).toMatchObject({
      type: 'UndefinedError',
      problem: "'int object' has no attribute 'x'",
      line: 3,
      column: 3,
    })
  })

  it('carry the words of raise_exception', () => {
    expect(() => render("{{ raise_exception('roles must alternate') }}")).toThrow(
      'TemplateError: roles must alternate',
    )
  })

  it('say that a clock is missing', () => {
    expect(() => compileTemplate("{{ strftime_now('%Y') }}").render({})).toThrow('options.clock')
  })
})

describe('generation blocks', () => {
  it('give the ranges of the text made inside them', () => {
    const source =
      '{% for m in messages %}<{{ m }}>{% generation %}a{{ m }}🎉{% endgeneration %};{% endfor %}'
    const { text, generated } = compileTemplate(source).render({ messages: ['x', 'yy'] })
    expect(text).toBe('<x>ax🎉;<yy>ayy🎉;')
    expect(generated.map(([start, end]) => text.slice(start, end))).toEqual(['ax🎉', 'ayy🎉'])
  })

  it('keep what is set inside them to themselves', () => {
    expect(render('{% generation %}{% set a = 1 %}{{ a }}{% endgeneration %}{{ a }}|')).toBe('1|')
  })
})

it('a filter for distinct items counts all undefined values as one', () => {
  const expression =
    "{{ [{'a': 1}, {}, {'b': 2}, {'a': 1}] | map(attribute='a') | unique | list | length }}"
  expect(render(expression)).toBe('2')
})

describe('the text of numbers', () => {
  it('keeps int and float apart through tojson and printing', () => {
    const given = parseJson('{"x": [1, 1.0, 1e-07, -0.0, 12345678901234567890]}') as Map<
      string,
      PythonValue
    >
    expect(compileTemplate('{{ x }}|{{ x | tojson }}').render(given).text).toBe(
      '[1, 1.0, 1e-07, -0.0, 12345678901234567890]|[1, 1.0, 1e-07, -0.0, 12345678901234567890]',
    )
  })
})
