import { PythonError } from '../python/error.ts'
import { type RangeParts, readRange, showRange } from '../python/range.ts'
import { formatTime, localTime } from '../python/strftime.ts'
import { plain } from '../python/text/text.ts'
import { fromEntries, setItem } from './dict.ts'
import { copyDict } from './foreign.ts'
import { toList, unpack, walk } from './iteration.ts'
import type { Run } from './run.ts'
import { spend } from './run.ts'
import { printable } from './show.ts'
import { markLike } from './text.ts'
import type { Callable, Dict, Input, Value } from './value.ts'
import { isText, Namespace, TemplateObject, typeError } from './value.ts'

/** As many items as Jinja's sandbox lets a range have. */
const MAXIMUM_RANGE = 100_000

const range: Callable = (_, { positional }) => {
  const parts = readRange(positional)
  if (parts.length > MAXIMUM_RANGE) {
    throw new PythonError(
      'OverflowError',
      `Range too big. The sandbox blocks ranges larger than MAX_RANGE (${MAXIMUM_RANGE}).`,
    )
  }
  return rangeObject(parts)
}

function rangeObject(parts: RangeParts): TemplateObject {
  const { start, stop, step, length } = parts
  const at = (index: number): number => start + index * step
  return new TemplateObject('range', {
    items: () => rangeItems(parts),
    length: () => length,
    item: index => {
      const position = index < 0 ? index + length : index
      return position >= 0 && position < length ? at(position) : undefined
    },
    slice: ({ first, last, count }, every) =>
      rangeObject({ start: at(first), stop: at(last), step: step * every, length: count }),
    attribute: name =>
      name === 'start' ? start : name === 'step' ? step : name === 'stop' ? stop : undefined,
    show: () => showRange(parts),
  })
}

function rangeItems({ start, step, length }: RangeParts): Value[] {
  const items: Value[] = []
  for (let index = 0; index < length; index++) items.push(start + index * step)
  return items
}

/** What `dict(…)` and `namespace(…)` make of their arguments. */
function toDict(run: Run, { positional, named }: Input): Dict {
  if (positional.length > 1) typeError(`dict expected at most 1 argument, got ${positional.length}`)
  const [source] = positional
  const dict: Dict = source instanceof Map ? copyDict(source) : new Map()
  spend(run, 8 * dict.size)
  if (!(source instanceof Map) && source !== undefined) {
    for (const pair of walk(run, source)) {
      const [key, value] = unpack(run, pair, 2)
      setItem(dict, key as Value, value as Value)
    }
  }
  for (const [name, value] of named ?? []) dict.set(name, value)
  return dict
}

const namespace: Callable = (run, input) => {
  const { positional, named } = input
  const attributes = new Map<string, Value>()
  // Filling a map takes less time than having one made of another.
  const members = positional.length === 0 ? (named ?? []) : toDict(run, input)
  for (const [key, value] of members) attributes.set(String(key), value)
  return new Namespace(attributes)
}

const cycler: Callable = (_, { positional }) => {
  if (positional.length === 0)
    throw new PythonError('RuntimeError', 'at least one item has to be provided')
  let position = 0
  const methods: Readonly<Record<string, Callable>> = {
    next: () => {
      const item = positional[position] as Value
      position = (position + 1) % positional.length
      return item
    },
    reset: () => {
      position = 0
      return null
    },
  }
  return new TemplateObject('Cycler', {
    attribute: name => {
      if (name === 'current') return positional[position]
      const call = Object.hasOwn(methods, name) ? methods[name] : undefined
      return call && new TemplateObject('method', { call })
    },
  })
}

const joiner: Callable = (_, { positional: [separator = ', '] }) => {
  let used = false
  return new TemplateObject('Joiner', {
    call: () => {
      if (used) return separator
      used = true
      return ''
    },
  })
}

const raiseException: Callable = (run, { positional: [message], named }) => {
  const text = message ?? named?.get('message')
  if (text === undefined) typeError("raise_exception() missing argument: 'message'")
  throw new PythonError('TemplateError', plain(printable(run, text)))
}

const strftimeNow: Callable = (run, { positional: [format], named }) => {
  const wanted = format ?? named?.get('format')
  if (!isText(wanted)) typeError('strftime_now() needs a format, which must be str')
  if (!run.clock) {
    throw new PythonError(
      'ClockError',
      'The template asks for the time with strftime_now(), but no clock was given (options.clock).',
    )
  }
  const written = formatTime(plain(wanted), localTime(run.clock()))
  run.moments.push({ format: plain(wanted), written })
  return markLike(written, wanted)
}

const fromkeys: Callable = (run, { positional: [keys = [], value = null] }) => {
  const list = toList(run, keys)
  spend(run, 8 * list.length)
  return fromEntries(list.map((key): [Value, Value] => [key, value]))
}

const lipsum: Callable = () =>
  typeError('lipsum() is not available: a rendering must not depend on chance.')

const callable = (call: Callable): TemplateObject => new TemplateObject('function', { call })

/** The names that every chat template can use. */
export const GLOBALS: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['range', callable(range)],
  [
    'dict',
    new TemplateObject('type', {
      call: toDict,
      attribute: name => (name === 'fromkeys' ? callable(fromkeys) : undefined),
      show: () => "<class 'dict'>",
    }),
  ],
  ['namespace', callable(namespace)],
  ['cycler', callable(cycler)],
  ['joiner', callable(joiner)],
  ['lipsum', callable(lipsum)],
  ['raise_exception', callable(raiseException)],
  ['strftime_now', callable(strftimeNow)],
])
