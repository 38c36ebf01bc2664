import type { ToolDefinition } from '../../message.ts'
import type { Unit, UnitResult } from '../blocks.ts'
import { broken, isName } from '../call.ts'
import { markers } from '../markers.ts'
import type { Reader, Source } from '../source.ts'
import type { ValueRule } from '../values.ts'
import { type Parameter, typedCall } from './tag-units.ts'

/** Calls written as a name and tagged pairs of keys and raw values. */
export interface KeyedUnit {
  readonly open: string
  /** A marker that ends the name; without it the first key or the closing marker does. */
  readonly separator?: string
  readonly close: string
  readonly key: { readonly open: string; readonly close: string }
  readonly value: { readonly open: string; readonly close: string }
  readonly rule: ValueRule
}

/** Keys and values: `<tool_call>NAME<arg_key>K</arg_key><arg_value>V</arg_value></tool_call>`. */
export function keyedUnit(format: KeyedUnit, schemas: readonly ToolDefinition[]): Unit {
  const { open, separator, close, key } = format
  const nameEnds = separator === undefined ? markers(key.open, close) : markers(separator)
  return {
    opens: [open],
    closes: [close],
    *read(source) {
      source.skip(open.length)
      const head = yield* source.near(nameEnds)
      if (!head) return broken('the name of the tool does not end')
      const name = head.text.trim()
      if (!isName(name)) return broken(`${JSON.stringify(name.slice(0, 80))} is not a name`)
      if (separator !== undefined) source.skip(separator.length)
      const parameters = yield* readPairs(source, format)
      if (typeof parameters === 'string') return broken(parameters, name)
      const call = typedCall(name, parameters, { rule: format.rule, schemas })
      return { kind: 'calls', calls: [call] } satisfies UnitResult
    },
  }
}

function* readPairs(source: Source, format: KeyedUnit): Reader<Parameter[] | string> {
  const { close, key, value } = format
  const keyEnd = markers(key.close)
  const valueEnd = markers(value.close)
  const parameters: Parameter[] = []
  for (;;) {
    yield* source.spaces()
    if (yield* source.take(close)) return parameters
    if (!(yield* source.take(key.open))) {
      return source.finished
        ? `the call is cut off before ${close}`
        : 'there is text where a key belongs'
    }
    const name = yield* source.near(keyEnd)
    if (!name) return `a key does not end with ${key.close}`
    source.skip(key.close.length)
    yield* source.spaces()
    if (!(yield* source.take(value.open))) return `a key is not followed by ${value.open}`
    const raw = source.collect()
    if ((yield* source.until(valueEnd)) === undefined) {
      return `a value is cut off before ${value.close}`
    }
    parameters.push({ name: name.text.trim(), raw: raw.text() })
    raw.close()
    source.skip(value.close.length)
  }
}
