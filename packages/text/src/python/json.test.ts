import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dumps, JsonError, parseJson } from './json.ts'
import type { PythonDict } from './value.ts'
import { PythonFloat, PythonSet, PythonTuple, toJavaScript } from './value.ts'

const RUNS = process.env.ESPALIER_SOAK ? 20_000 : 300

describe('parseJson', () => {
  it('keeps int and float apart, and every digit of a long int', () => {
    expect(parseJson('[1, 1.0, -0.0, 1e-07, 12345678901234567890, -0]')).toEqual([
      1,
      new PythonFloat(1),
      new PythonFloat(-0),
      new PythonFloat(1e-7),
      12345678901234567890n,
      0,
    ])
  })

  it('keeps the order of integer-like keys, and the first place of the last equal key', () => {
    const text = '{"b": 1, "2": 2, "1": 3, "b": 4, "__proto__": 5}'
    expect(dumps(parseJson(text))).toBe('{"b": 4, "2": 2, "1": 3, "__proto__": 5}')
  })

  it('reads NaN and the infinities as Python does', () => {
    expect(dumps(parseJson('[NaN, Infinity, -Infinity]'))).toBe('[NaN, Infinity, -Infinity]')
  })

  it('keeps lone surrogates', () => {
    expect(parseJson('"\\ud83c x \\ud83c\\udf89"')).toBe('\ud83c x 🎉')
  })

  it.each([
    ['', 'Expecting value: line 1 column 1 (char 0)'],
    ['[1,\n 2,]', 'Expecting value: line 2 column 4 (char 7)'],
    ['{"a" 1}', "Expecting ':' delimiter: line 1 column 6 (char 5)"],
    ['{a: 1}', 'Expecting property name enclosed in double quotes: line 1 column 2 (char 1)'],
    ['[1 2]', "Expecting ',' delimiter: line 1 column 4 (char 3)"],
    ['"🎉', 'Unterminated string starting at: line 1 column 1 (char 0)'],
    ['"🎉\n"', 'Invalid control character at: line 1 column 3 (char 2)'],
    ['"\\x"', 'Invalid \\escape: line 1 column 2 (char 1)'],
    ['1 1', 'Extra data: line 1 column 3 (char 2)'],
    ['01', 'Extra data: line 1 column 2 (char 1)'],
  ])('refuses %j as Python does', (text, message) => {
    expect(() => parseJson(text)).toThrow(message)
  })

  it('refuses ints with more digits than Python converts', () => {
    expect(dumps(parseJson('9'.repeat(4300)))).toBe('9'.repeat(4300))
    expect(() => parseJson('9'.repeat(4301))).toThrow('Exceeds the limit (4300 digits)')
  })

  it('bounds the depth', () => {
    expect(() => parseJson('['.repeat(100_000))).toThrow(JsonError)
    expect(parseJson('['.repeat(900) + ']'.repeat(900))).toHaveLength(1)
  })

  it('reads whatever JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        // ours gives bigints back where JSON.parse would have lost digits
        const text = JSON.stringify(value)
        const back = JSON.stringify(toJavaScript(parseJson(text)), (_, member) =>
          typeof member === 'bigint' ? Number(member) : member,
        )
        expect(back).toBe(text)
      }),
      { seed: 7, numRuns: RUNS },
    )
  })
})

describe('dumps', () => {
  const value = parseJson('{"b": [1, 1.0, {}, []], "a": "é\\u007f\\n<&🎉"}')

  it('writes as Python does by default', () => {
    expect(dumps(value)).toBe('{"b": [1, 1.0, {}, []], "a": "\\u00e9\\u007f\\n<&\\ud83c\\udf89"}')
  })

  it('leaves other characters alone without ensure_ascii, lone surrogates too', () => {
    expect(dumps(value, { ensureAscii: false })).toBe(
      '{"b": [1, 1.0, {}, []], "a": "é\x7f\\n<&🎉"}',
    )
    expect(dumps('\\ud800 \ud800 \\', { ensureAscii: false })).toBe('"\\\\ud800 \ud800 \\\\"')
  })

  it('indents', () => {
    expect(dumps(parseJson('{"a": [1, {"b": null}], "c": {}}'), { indent: 2 })).toBe(
      '{\n  "a": [\n    1,\n    {\n      "b": null\n    }\n  ],\n  "c": {}\n}',
    )
    expect(dumps([1, true], { indent: 0 })).toBe('[\n1,\ntrue\n]')
    expect(dumps([1, true], { indent: '\t' })).toBe('[\n\t1,\n\ttrue\n]')
  })

  it('stops where the caller says', () => {
    expect(() => dumps(['a'.repeat(50), 'b'], { maximum: 20 })).toThrow('longer than 20 characters')
  })

  it('sorts keys by code points and takes separators', () => {
    const dict = parseJson('{"\uffff": 1, "🎉": 2, "B": 3, "a": 4}')
    expect(dumps(dict, { sortKeys: true, separators: [',', ':'], ensureAscii: false })).toBe(
      '{"B":3,"a":4,"\uffff":1,"🎉":2}',
    )
  })

  it('writes keys of every kind that Python takes', () => {
    const dict: PythonDict = new Map()
    for (const key of [1, null, true, new PythonFloat(2.5)]) dict.set(key, dict.size + 1)
    expect(dumps(dict)).toBe('{"1": 1, "null": 2, "true": 3, "2.5": 4}')
    expect(() => dumps(new Map([[new PythonTuple([1]), 1]]))).toThrow('keys must be str')
    expect(() => dumps(new PythonSet([1]))).toThrow('Object of type set is not JSON serializable')
    expect(dumps(new PythonTuple([1, 2]))).toBe('[1, 2]')
  })
})
