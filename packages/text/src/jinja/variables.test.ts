import { describe, expect, it } from 'vitest'
import { markForeign } from './foreign.ts'
import { compileTemplate } from './template.ts'

const render = (source: string, variables: Record<string, unknown>): string =>
  compileTemplate(source).render(variables).text

describe('variables', () => {
  it('become values when the template names them, and what has none raises there', () => {
    const variables = { used: 1, unused: () => 1 }
    expect(render('{{ used }}', variables)).toBe('1')
    expect(() => render('{{ unused }}', variables)).toThrow('A function has no Python value.')
  })

  it('are those that were given, not what every object has', () => {
    const source = '{{ constructor is defined }} {{ __proto__ is defined }} {{ range is defined }}'
    expect(render(source, {})).toBe('False False True')
  })

  it('keep the marks of texts that are named late and lie deep', () => {
    const given = { first: [1], later: [{ deep: { text: markForeign('x"y') } }] }
    const { text, foreign } = compileTemplate('{{ first|tojson }}{{ later|tojson }}').render(given)
    expect(text).toBe('[1][{"deep": {"text": "x\\"y"}}]')
    expect(foreign).toEqual([[3, text.length]])
  })
})
