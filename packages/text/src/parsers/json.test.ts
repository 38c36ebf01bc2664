import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isJson, jsonItems, jsonMembers, jsonValue, scanJson } from './json.ts'
import { Source } from './source.ts'

function scan(text: string) {
  const source = new Source()
  source.push(text, false)
  source.end()
  const step = scanJson(source).next()
  if (!step.done) throw new Error('the scan waits although the text has ended')
  return { scan: step.value, position: source.position }
}

function scanInPieces(text: string, lengths: readonly number[]) {
  const source = new Source()
  const scanning = scanJson(source)
  let step = scanning.next()
  for (let index = 0, turn = 0; index < text.length && !step.done; turn++) {
    const end = index + lengths[turn % lengths.length]!
    source.push(text.slice(index, end), false)
    index = end
    step = scanning.next()
  }
  source.end()
  if (!step.done) step = scanning.next()
  return { scan: step.value, position: source.position }
}

const isValid = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('scanJson', () => {
  it('ends where the value ends, markers within strings or not', () => {
    const value = '{"a": ["</tool_call>", {"b": "\\"}"}]}'
    expect(scan(`${value}</tool_call>`)).toEqual({
      scan: { kind: 'value', text: value, edges: [1, 4, 6, value.length - 1] },
      position: value.length,
    })
  })

  it.each([
    ['{"a": 1,}', 'the JSON has "}" where a key belongs'],
    ['{"a" 1}', 'the JSON has "1" where a colon belongs'],
    ['[1 2]', 'the JSON has "2" where a comma or a closing bracket belongs'],
    ['{"a": "b', 'the JSON is cut off within a string'],
    ['{"a": [', 'the JSON is cut off'],
    ['{"a": "\\x"}', 'the JSON has the unknown escape "\\\\x"'],
    ['{"a": "\n"}', 'the JSON has a raw control character within a string'],
    ['{"a": 01}', 'the JSON has "01", which is not a JSON value'],
    ['{"a": NaN}', 'the JSON has "NaN", which is not a JSON value'],
    [`${'['.repeat(1001)}`, 'the JSON nests deeper than 1000'],
  ])('says what is wrong with %s', (text, problem) => {
    expect(scan(text).scan).toEqual({ kind: 'broken', problem })
  })

  it('reads alike however the text arrives', () => {
    const valid = fc.json({ maxDepth: 3 })
    const damaged = fc
      .tuple(valid, fc.nat(), fc.constantFrom('', '"', '\\', '\\u00e', '\n', '-', '}', 'nul', ' '))
      .map(([json, at, by]) => json.slice(0, at % json.length) + by + json.slice(at % json.length))
    const cuts = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 9 })
    fc.assert(
      fc.property(fc.oneof(valid, damaged), cuts, (text, lengths) => {
        expect(scanInPieces(text, lengths)).toEqual(scan(text))
      }),
      { seed: 13, numRuns: 1000 },
    )
  })

  it('accepts exactly what JSON.parse accepts', () => {
    const tokens = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"\\n"',
      '1',
      '-0.5e3',
      '01',
    )
    const words = fc.constantFrom('true', 'null', 'nul', ' ', '"', '\\', '-', '.')
    const mixed = fc.array(fc.oneof(tokens, words), { maxLength: 9 }).map(all => all.join(''))
    const texts = fc.oneof(mixed, fc.json({ maxDepth: 3 }))
    fc.assert(
      fc.property(texts, text => {
        const trimmed = text.replace(/^[ \n]+|[ \n]+$/g, '')
        expect(isJson(trimmed)).toBe(isValid(trimmed))
      }),
      { seed: 11, numRuns: 2000 },
    )
  })
})

describe('parts of a value', () => {
  it('are given as they are written', () => {
    const members = jsonMembers(jsonValue('{ "a" : 1.0 , "b\\n": {"c": [ ]}, "a": 1e2 }'))
    expect([...members]).toEqual([
      ['a', '1e2'],
      ['b\n', '{"c": [ ]}'],
    ])
    expect(jsonMembers(jsonValue('{}')).size).toBe(0)
    expect(jsonItems(jsonValue('[ 1.0, "x,]" , [2]]'))).toEqual(['1.0', '"x,]"', '[2]'])
    expect(jsonItems(jsonValue('[]'))).toEqual([])
  })

  it('are all that JSON.parse finds', () => {
    const values = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }))
    const indent = fc.constantFrom(0, 1, '\t', '\r\n')
    fc.assert(
      fc.property(values, indent, (value, space) => {
        const members = jsonMembers(jsonValue(JSON.stringify(value, null, space)))
        const read = [...members].map(([key, text]) => [key, JSON.parse(text) as unknown])
        expect(read).toEqual(Object.entries(JSON.parse(JSON.stringify(value)) as object))
        const items = jsonItems(jsonValue(JSON.stringify(Object.values(value), null, space)))
        expect(items.map(item => JSON.parse(item) as unknown)).toEqual(read.map(([, item]) => item))
      }),
      { seed: 17, numRuns: 300 },
    )
  })
})
