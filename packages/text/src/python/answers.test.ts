import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { TemplateError, TemplateSyntaxError } from '../jinja/error.ts'
import { compileTemplate } from '../jinja/template.ts'
import { parseLiteral } from './literal.ts'
import { repr } from './repr.ts'

/** What CPython 3.11 answered to an expression: recorded by scripts/python-answers.py. */
interface Row {
  readonly expression: string
  readonly before?: string
  readonly answer?: string
  readonly error?: string
}

const rows: readonly Row[] = gunzipSync(readFileSync(new URL('answers.jsonl.gz', import.meta.url)))
  .toString('utf8')
  .trimEnd()
  .split('\n')
  .map(line => JSON.parse(line) as Row)

/** What a template makes of an expression, or the error it raises; `undefined` if it cannot be said in one. */
function templateAnswer(expression: string): string | undefined {
  try {
    const template = compileTemplate(`{{ '%r' % ((${expression}),) }}`)
    return template.render({}).text
  } catch (error) {
    if (error instanceof TemplateSyntaxError) return undefined
    if (error instanceof TemplateError) return error.type
    throw error
  }
}

/** Functions that templates lack, and what Jinja reads in another way, such as the sign in `-2**64`. */
const NOT_JINJA =
  /\b(?:abs|all|any|ascii|bool|callable|chr|dict|divmod|enumerate|filter|float|format|getattr|hasattr|int|isinstance|iter|len|list|map|max|min|next|ord|pow|range|repr|reversed|round|set|sorted|str|sum|tuple|type|zip)\(|\bis\b|\bfor\b|\blambda\b|[~|&^]|<<|>>|[{[(]\*|[0-9][<>=!]{1,2}.*[<>=]|\.(?:append|encode)\(|\\N|\bf['"]|\bstr\.|-[0-9]+\*\*/

describe('the table of CPython', () => {
  it('has thousands of expressions', () => {
    expect(rows.length).toBeGreaterThan(12_000)
  })

  it('agrees with templates wherever they can say the expression', () => {
    let compared = 0
    const wrong: string[] = []
    for (const { expression, before, answer, error } of rows) {
      if (before !== undefined || NOT_JINJA.test(expression)) continue
      const given = templateAnswer(expression)
      if (given === undefined || given === 'UnsupportedError') continue
      compared++
      const isRefused = error !== undefined && ERRORS_OF_TEMPLATES.has(given)
      if (given !== (answer ?? error) && !isRefused) wrong.push(`${expression}: ${given}`)
    }
    expect(wrong).toEqual([])
    expect(compared).toBeGreaterThan(5000)
  })

  it('agrees with the reader of literals', () => {
    const literals = rows.filter(({ answer }) => answer !== undefined && isLiteral(answer))
    for (const { answer = '' } of literals) expect(repr(parseLiteral(answer))).toBe(answer)
    expect(literals.length).toBeGreaterThan(5000)
  })
})

/** What templates raise instead: an undefined value, or the refusal of the sandbox. */
const ERRORS_OF_TEMPLATES = new Set(['Undefined', 'UndefinedError', 'SecurityError'])

const isLiteral = (text: string): boolean =>
  !/^-?(?:inf|nan)|\b(?:nan|inf)\b|[a-z_]\(|j\)?$|^[a-z]\w*\.|^<|^Ellipsis/.test(text) &&
  !/range\(|dict_/.test(text)
