import * as errors from '../../packages/text/src/jinja/error.ts'
import { compileTemplate } from '../../packages/text/src/jinja/template.ts'
import { type Attack, hold, piecesOf } from './attack.ts'

const pieces = [
  ...['{{ ', ' }}', '{% for x in messages %}', '{% endfor %}', '{% if x %}', '{% endif %}'],
  ...['{% set x = ', ' %}', '{% macro m(a) %}', '{% endmacro %}', 'm(1)', 'x', 'messages', '|'],
  ...['.__class__', '.constructor', "['__proto__']", '.__init__.__globals__', "'a' * 99999999"],
  ...['range(999999999)', '|tojson', '|join', '|replace("a", x)', '(', ')', '[', ']', '"', "'"],
  ...['+', '~', '%', '**', '//', 'x.append(x)', 'namespace(a=x)', 'loop', '-', '1', '\n', 'is'],
  ...['{#', '#}', '{%-', '-%}', 'cycler', 'lipsum()', 'self', 'import', 'strftime_now("%Y")'],
]
const limits = { steps: 20_000, characters: 100_000 }

/** Random templates: they render, or are refused with a template error. */
export const templates: Attack = {
  name: 'templates',
  promise: 'H6',
  share: 100,
  async open() {
    const variables = new Map([['messages', ['a', 'b']]])
    return draw => {
      const source = piecesOf(pieces, 24, draw)
      try {
        compileTemplate(source).render(variables, { limits, clock: () => new Date(0) })
      } catch (cause) {
        const isKnown = (cause as Error).name in errors
        hold(isKnown, `${JSON.stringify(source)}: ${String(cause)}`)
      }
      hold(Object.keys(Object.prototype).length === 0, `${source} changed all objects`)
    }
  },
}
