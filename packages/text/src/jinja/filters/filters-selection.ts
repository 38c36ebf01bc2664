import { PythonError } from '../../python/error.ts'
import { plain } from '../../python/text/text.ts'
import { unknownName } from '../frame.ts'
import { iteratorObject, walk } from '../iteration.ts'
import { isTrue } from '../operations.ts'
import type { Run } from '../run.ts'
import { charge } from '../run.ts'
import type { Method } from '../signature.ts'
import type { Input, Value } from '../value.ts'
import { isText, typeError, typeOf } from '../value.ts'
import type { Getter } from './attribute.ts'
import { makeGetter } from './attribute.ts'
import { TESTS } from './tests.ts'

/** Raises Jinja's complaint about the arguments of a filter. */
function argumentError(message: string): never {
  throw new PythonError('FilterArgumentError', message)
}

type FindFilter = (name: string) => Method | undefined

const nameOf = (value: Value): string =>
  isText(value) ? plain(value) : typeError(`a name must be str, not ${typeOf(value)}`)

function mapper(run: Run, input: Input, findFilter: FindFilter): Getter {
  const { positional, named } = input
  if (positional.length === 0 && named?.has('attribute')) {
    const { attribute, default: fallback, ...others } = Object.fromEntries(named)
    const [unexpected] = Object.keys(others)
    if (unexpected !== undefined) argumentError(`Unexpected keyword argument '${unexpected}'`)
    return makeGetter(attribute, { fallback })
  }
  const [name, ...rest] = positional
  if (name === undefined) argumentError('map requires a filter argument')
  const filter = findFilter(nameOf(name)) ?? unknownName('filter', nameOf(name))
  const given: Input = { positional: rest, named }
  return item => {
    charge(run, item)
    return filter.call(run, item, given)
  }
}

function chooser(run: Run, input: Input, byAttribute: boolean): (item: Value) => boolean {
  const values = [...input.positional]
  let get: Getter = item => item
  if (byAttribute) {
    const attribute = values.shift()
    if (attribute === undefined) argumentError('Missing parameter for attribute name')
    get = makeGetter(attribute)
  }
  const name = values.shift()
  if (name === undefined) return item => isTrue(get(item))
  const test = TESTS.get(nameOf(name)) ?? unknownName('test', nameOf(name))
  const given: Input = { positional: values, named: input.named }
  return item => {
    const value = get(item)
    charge(run, value)
    return test(run, value, given)
  }
}

function* mapped(run: Run, value: Value, make: () => Getter): Generator<Value> {
  if (!isTrue(value)) return
  const get = make()
  for (const item of walk(run, value)) yield get(item)
}

function* chosen(run: Run, value: Value, make: () => (item: Value) => boolean): Generator<Value> {
  if (!isTrue(value)) return
  const isChosen = make()
  for (const item of walk(run, value)) if (isChosen(item)) yield item
}

function choosing(byAttribute: boolean, keep: boolean): Method {
  return {
    changes: false,
    call: (run, value, input) =>
      iteratorObject(
        chosen(run, value, () => {
          const choose = chooser(run, input, byAttribute)
          return item => choose(item) === keep
        }),
      ),
  }
}

/** The filters that work with other filters and tests, item by item. */
export function selectionFilters(findFilter: FindFilter): readonly (readonly [string, Method])[] {
  return [
    [
      'map',
      {
        changes: false,
        call: (run, value, input) =>
          iteratorObject(mapped(run, value, () => mapper(run, input, findFilter))),
      },
    ],
    ['select', choosing(false, true)],
    ['reject', choosing(false, false)],
    ['selectattr', choosing(true, true)],
    ['rejectattr', choosing(true, false)],
  ]
}
