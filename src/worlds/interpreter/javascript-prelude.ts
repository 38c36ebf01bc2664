/**
 * What a JavaScript child runs before anything else. Its value is a function that takes the printer and
 * its limit, and returns the handlers of values, errors and seeds.
 */
export const javascriptPrelude = String.raw`
(send, limit) => {
  const { stringify } = JSON
  const { isArray } = Array
  const { keys } = Object

  function show(value, depth, seen) {
    if (typeof value === 'string') return depth === 0 ? value : stringify(value)
    if (typeof value === 'bigint') return String(value) + 'n'
    if (typeof value === 'function') return '[function ' + (value.name || 'anonymous') + ']'
    if (typeof value === 'symbol') return value.toString()
    if (typeof value !== 'object' || value === null) return String(value)
    if (value instanceof Error) return complain(value)
    if (seen.includes(value)) return '[circular]'
    if (depth > 5) return isArray(value) ? '[…]' : '{…}'
    const inner = [...seen, value]
    const all = (items, one) => {
      const shown = items.slice(0, 200).map(one)
      return shown.concat(items.length > 200 ? ['… ' + (items.length - 200) + ' more'] : []).join(', ')
    }
    const each = item => show(item, depth + 1, inner)
    if (isArray(value)) return '[' + all(value, each) + ']'
    if (value instanceof Map) return 'Map {' + all([...value], ([key, item]) => each(key) + ' => ' + each(item)) + '}'
    if (value instanceof Set) return 'Set {' + all([...value], each) + '}'
    if (value instanceof Date || value instanceof RegExp) return String(value)
    return '{' + all(keys(value), key => key + ': ' + each(value[key])) + '}'
  }

  function complain(error) {
    if (!(error instanceof Error)) return 'Uncaught ' + show(error, 1, [])
    const places = String(error.stack ?? '').split('\n').filter(line => line.includes('cell-'))
    return [error.name + ': ' + error.message, ...places.slice(0, 20)].join('\n')
  }

  const print = (...values) => {
    const text = values.map(value => show(value, 0, [])).join(' ') + '\n'
    send(text.slice(0, limit), text.length)
  }
  globalThis.print = print
  globalThis.console = { log: print, info: print, warn: print, error: print, debug: print }
  globalThis.finalAnswer = value => print('\\boxed{' + show(value, 0, []) + '}')

  let state = 0
  Math.random = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    describe: value => (value === undefined ? '' : show(value, 1, []).slice(0, limit + 1)),
    complain: error => complain(error).slice(0, limit),
    reseed: seed => {
      state = seed | 0
    },
  }
}
`
