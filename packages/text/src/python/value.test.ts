import { describe, expect, it } from 'vitest'
import { repr } from './repr.ts'
import { fromJavaScript, PythonFloat, PythonTuple, toJavaScript } from './value.ts'

describe('fromJavaScript', () => {
  it('turns plain data into Python values', () => {
    const value = { b: [1, 0.5, null, undefined], 2: 'x', gone: undefined, big: 2n ** 64n }
    expect(repr(fromJavaScript(value))).toBe(
      "{'2': 'x', 'b': [1, 0.5, None, None], 'big': 18446744073709551616}",
    )
  })

  it('keeps Python values, and takes only own members', () => {
    const inherited = Object.create(null) as Record<string, unknown>
    inherited.own = new PythonFloat(1)
    expect(repr(fromJavaScript(inherited))).toBe("{'own': 1.0}")
    expect(repr(fromJavaScript(JSON.parse('{"__proto__": {"x": 1}}')))).toBe(
      "{'__proto__': {'x': 1}}",
    )
    expect(repr(fromJavaScript(new PythonTuple([1, new Map([['a', 0.5]])])))).toBe(
      "(1, {'a': 0.5})",
    )
  })

  it('refuses what has no Python value', () => {
    expect(() => fromJavaScript({ at: new Date(0) })).toThrow('A Date has no Python value')
    expect(() => fromJavaScript([() => 1])).toThrow('A function has no Python value')
    const loop: unknown[] = []
    loop.push(loop)
    expect(() => fromJavaScript(loop)).toThrow('deeper than 1000 levels')
  })
})

describe('toJavaScript', () => {
  it('gives plain data back', () => {
    const value = fromJavaScript({ a: [1, 0.5, { b: null }], c: 'x' })
    expect(toJavaScript(value)).toEqual({ a: [1, 0.5, { b: null }], c: 'x' })
    expect(toJavaScript(new PythonTuple([new PythonFloat(1)]))).toEqual([1])
  })

  it('keeps a key called __proto__ a key', () => {
    const object = toJavaScript(new Map([['__proto__', 1]])) as object
    expect(Object.keys(object)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(object)).toBe(Object.prototype)
  })
})
