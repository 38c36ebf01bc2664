import { describe, expect, it } from 'vitest'
import { schemaTypes } from './schema.ts'
import { toJsonValue } from './values.ts'

const text = { undeclared: 'text', union: 'text' } as const
const typed = { undeclared: 'text', union: 'typed' } as const
const json = { undeclared: 'json', union: 'json' } as const
const union = { anyOf: [{ type: 'string' }, { type: 'integer' }, { type: 'null' }] }

describe('toJsonValue', () => {
  it.each([
    ['null', { type: 'string' }, '"null"'],
    ['"x"', { type: 'string' }, '"\\"x\\""'],
    ['null', { type: ['string', 'null'] }, 'null'],
    [' 12 ', { type: 'integer' }, '12'],
    ['1.0', { type: 'number' }, '1.0'],
    ['TRUE', { type: 'boolean' }, 'true'],
    ['three', { type: 'integer' }, '"three"'],
    ["{'a': (1, None)}", { type: 'object' }, '{"a": [1, null]}'],
    ['[1, 2]', { type: 'array' }, '[1, 2]'],
    ['celsius', { enum: ['celsius', 'kelvin'] }, '"celsius"'],
  ])('reads %s under %j', (raw, schema, value) => {
    expect(toJsonValue(raw, schema, text)).toBe(value)
  })

  it('decides what the schema leaves open by the format', () => {
    expect(toJsonValue('42', union, text)).toBe('"42"')
    expect(toJsonValue('42', union, typed)).toBe('42')
    expect(toJsonValue('4.2', union, typed)).toBe('"4.2"')
    expect(toJsonValue('{"a": 1}', union, json)).toBe('{"a": 1}')
    expect(toJsonValue('12', undefined, text)).toBe('"12"')
    expect(toJsonValue('12', undefined, json)).toBe('12')
    expect(toJsonValue('{"a": 1}', undefined, text)).toBe('{"a": 1}')
    expect(toJsonValue('{a', undefined, json)).toBe('"{a"')
  })
})

describe('schemaTypes', () => {
  it('finds types wherever a schema states them', () => {
    expect([
      ...schemaTypes({ oneOf: [{ type: 'number' }, { allOf: [{ type: 'null' }] }] }),
    ]).toEqual(['number', 'null'])
    expect([...schemaTypes({ enum: [1, 'a', null, 0.5] })]).toEqual([
      'integer',
      'string',
      'null',
      'number',
    ])
    expect([...schemaTypes({ properties: {} })]).toEqual(['object'])
    expect([...schemaTypes({ type: 'made up' })]).toEqual([])
  })

  it('survives a schema that contains itself', () => {
    const loop: Record<string, unknown> = {}
    loop.anyOf = [loop]
    expect(schemaTypes(loop).size).toBe(0)
  })
})
