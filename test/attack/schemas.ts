import { linearPattern, nativePattern } from '../../packages/text/src/patterns/pattern.ts'
import { validatorOf } from '../../src/engine/environments/tools/json-schema.ts'
import { type Attack, damagedJson, hold, oneOf, piecesOf } from './attack.ts'

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', pattern: '^(?:[a-z]+ ?)+$', maxLength: 20 },
    count: { type: 'integer', minimum: 0 },
    items: { type: 'array', items: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/one' }] } },
  },
  $defs: { one: { type: 'object', required: ['id'], properties: { id: { enum: [1, 2] } } } },
  required: ['name'],
  additionalProperties: false,
}
const value = { name: 'a b', count: 1, items: ['x', { id: 1 }] }

/** Schemas and values with places damaged: checked, or refused as schemas are. */
export const schemas: Attack = {
  name: 'JSON schemas',
  promise: 'H6',
  share: 5,
  async open() {
    return draw => {
      const rules = damagedJson(schema, draw)
      const given = draw() < 0.5 ? value : damagedJson(value, draw)
      try {
        const problems = validatorOf(rules as typeof schema)(given)
        hold(
          problems.every(problem => problem !== ''),
          JSON.stringify(rules),
        )
      } catch (cause) {
        const isTold =
          cause instanceof Error && cause.message !== '' && !(cause instanceof RangeError)
        hold(isTold, `${JSON.stringify(rules)}: ${String(cause)}`)
      }
    }
  },
}

const pieces = [
  'a',
  'b',
  '.',
  '[ab]',
  '[^b]',
  '\\s',
  '(?:',
  '(?=',
  '(?!',
  '(?<=',
  ')',
  ')',
  ')',
  '|',
  '*',
  '+',
  '?',
  '{1,2}',
  '*?',
  '^',
  '$',
  '\\b',
]

/** Random patterns: the matches are those of JavaScript's own engine. */
export const patterns: Attack = {
  name: 'patterns',
  promise: 'H6',
  share: 20,
  async open() {
    return draw => {
      const expression = compiled(
        piecesOf(pieces, 10, draw),
        oneOf(['u', 'v', 'iu', 'mu', 'su'], draw),
      )
      const linear = expression && linearPattern(expression)
      if (!expression || !linear) return
      const text = piecesOf(['a', 'b', 'A', ' ', '\n', 'é'], 12, draw)
      const spans = (pattern: typeof linear): string => {
        const found: number[] = []
        pattern.forEach(text, (start, end) => found.push(start, end))
        return found.join()
      }
      const [ours, native] = [spans(linear), spans(nativePattern(expression))]
      hold(ours === native, `${expression} in ${JSON.stringify(text)}: ${ours}, not ${native}`)
    }
  },
}

function compiled(source: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(source, flags)
  } catch {
    return undefined
  }
}
