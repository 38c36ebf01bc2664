import { asNumber } from '../../python/compare.ts'
import { isLower, isUpper } from '../../python/text/character.ts'
import { plain } from '../../python/text/text.ts'
import { PythonFloat } from '../../python/value.ts'
import { isIterable, lengthOf } from '../iteration.ts'
import { calculate, isEqual, isIn, isOrdered } from '../operations.ts'
import type { Run } from '../run.ts'
import { printable } from '../show.ts'
import type { Signature } from '../signature.ts'
import { bind, signature } from '../signature.ts'
import { TemplateText } from '../template-text.ts'
import type { Input, Value } from '../value.ts'
import { isText, TemplateObject, Undefined } from '../value.ts'
import { FILTERS } from './filters.ts'

/** A test of a template: `value is name(arguments)`. */
export type Test = (run: Run, value: Value, input: Input) => boolean

const asking =
  (ask: (value: Value) => boolean): Test =>
  (_, value, input) => {
    if (input.positional.length > 0 || input.named) bind(NONE, input)
    return ask(value)
  }

const NONE: Signature = signature('test', '')

const comparing = (
  name: string,
  parameter: string,
  compare: (run: Run, value: Value, other: Value) => boolean,
): Test => {
  const shape = signature(name, parameter)
  return (run, value, input) => {
    const { positional, named } = input
    const isPlain = positional.length === 1 && named === undefined
    return compare(run, value, (isPlain ? positional : bind(shape, input))[0] as Value)
  }
}

const remainder = (run: Run, value: Value, divisor: Value): Value =>
  calculate(run, '%', [value, divisor])

const equal = comparing('eq', 'b', isEqual)
const unequal = comparing('ne', 'b', (run, value, other) => !isEqual(run, value, other))
const greater = comparing('gt', 'b', (run, ...pair) => isOrdered(run, '>', pair))
const atLeast = comparing('ge', 'b', (run, ...pair) => isOrdered(run, '>=', pair))
const less = comparing('lt', 'b', (run, ...pair) => isOrdered(run, '<', pair))
const atMost = comparing('le', 'b', (run, ...pair) => isOrdered(run, '<=', pair))

const isSame = (value: Value, other: Value): boolean =>
  value === other || (isText(value) && isText(other) && plain(value) === plain(other))

const isSequence = (value: Value): boolean =>
  isText(value) ||
  (lengthOf(value) !== undefined &&
    !(value instanceof TemplateObject && value.behaviour.item === undefined))

const isInteger = (value: Value): boolean =>
  typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))

const isFloat = (value: Value): boolean =>
  value instanceof PythonFloat || (typeof value === 'number' && !Number.isInteger(value))

/** Every test a chat template can use. */
export const TESTS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ['odd', (run, value) => isEqual(run, remainder(run, value, 2), 1)],
  ['even', (run, value) => isEqual(run, remainder(run, value, 2), 0)],
  [
    'divisibleby',
    comparing('divisibleby', 'num', (run, value, divisor) =>
      isEqual(run, remainder(run, value, divisor), 0),
    ),
  ],
  ['defined', asking(value => !(value instanceof Undefined))],
  ['undefined', asking(value => value instanceof Undefined)],
  ['filter', asking(value => isText(value) && FILTERS.has(plain(value)))],
  ['test', asking(value => isText(value) && TESTS.has(plain(value)))],
  ['none', asking(value => value === null)],
  ['boolean', asking(value => typeof value === 'boolean')],
  ['false', asking(value => value === false)],
  ['true', asking(value => value === true)],
  ['integer', asking(isInteger)],
  ['float', asking(isFloat)],
  ['lower', (run, value) => isLower(plain(printable(run, value)))],
  ['upper', (run, value) => isUpper(plain(printable(run, value)))],
  ['string', asking(value => isText(value))],
  ['mapping', asking(value => value instanceof Map)],
  ['number', asking(value => asNumber(value) !== undefined)],
  ['sequence', asking(isSequence)],
  ['iterable', asking(isIterable)],
  [
    'callable',
    asking(
      value =>
        value instanceof Undefined ||
        (value instanceof TemplateObject && value.behaviour.call !== undefined),
    ),
  ],
  ['sameas', comparing('sameas', 'other', (_, value, other) => isSame(value, other))],
  ['escaped', asking(value => value instanceof TemplateText && value.markup)],
  ['in', comparing('in', 'seq', (run, value, container) => isIn(run, value, container))],
  ...(['==', 'eq', 'equalto'] as const).map((name): [string, Test] => [name, equal]),
  ...(['!=', 'ne'] as const).map((name): [string, Test] => [name, unequal]),
  ...(['>', 'gt', 'greaterthan'] as const).map((name): [string, Test] => [name, greater]),
  ...(['>=', 'ge'] as const).map((name): [string, Test] => [name, atLeast]),
  ...(['<', 'lt', 'lessthan'] as const).map((name): [string, Test] => [name, less]),
  ...(['<=', 'le'] as const).map((name): [string, Test] => [name, atMost]),
])
