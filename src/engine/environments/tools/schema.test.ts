import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { StandardSchema } from '../../../base/core/tool.ts'
import { readSchema } from './schema.ts'

const standard = (more: object): StandardSchema => ({
  ...more,
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: value =>
      value === 'right' ? { value } : { issues: [{ message: 'wrong', path: [{ key: 'at' }, 0] }] },
    ...('converter' in more ? { jsonSchema: more.converter } : {}),
  },
})

describe('what policies are shown', () => {
  it('is the input side of a zod schema, without what says nothing', async () => {
    const schema = z.object({
      pears: z.int(),
      most: z.int().max(9),
      unit: z.string().default('kg'),
    })
    expect((await readSchema(schema)).parameters).toEqual({
      type: 'object',
      properties: {
        pears: { type: 'integer' },
        most: { type: 'integer', maximum: 9 },
        unit: { type: 'string', default: 'kg' },
      },
      required: ['pears', 'most'],
    })
  })

  it('is what another Standard Schema tells of itself', async () => {
    const properties = { a: { type: 'string' } }
    const converter = { input: () => ({ $schema: 'x', type: 'object', properties }) }
    expect((await readSchema(standard({ converter }))).parameters).toEqual({
      type: 'object',
      properties,
    })
    const older = standard({ toJsonSchema: () => ({ type: 'object' }) })
    expect((await readSchema(older)).parameters).toEqual({ type: 'object' })
  })

  it('cannot be guessed: a schema that does not tell is refused', async () => {
    await expect(readSchema(standard({}))).rejects.toThrow(
      /test schema cannot tell its JSON schema/,
    )
  })
})

describe('what is checked', () => {
  it('by a Standard Schema, with the path of each problem', async () => {
    const schema = await readSchema(standard({ toJsonSchema: () => ({}) }))
    expect(await schema.validate('right')).toEqual({ kind: 'valid', value: 'right' })
    expect(await schema.validate(1)).toEqual({ kind: 'invalid', problems: ['at.0: wrong'] })
  })

  it.each([
    undefined,
    'http://json-schema.org/draft-07/schema#',
    'https://json-schema.org/draft/2020-12/schema',
  ])('by plain JSON schema of %s', async $schema => {
    const properties = { city: { type: 'string', format: 'no-such' }, unit: { enum: ['C', 'F'] } }
    const json = {
      ...($schema && { $schema }),
      type: 'object',
      properties,
      required: ['city'],
      additionalProperties: false,
    }
    const schema = await readSchema(json)
    expect(schema.parameters).not.toHaveProperty('$schema')
    expect(await schema.validate({ city: 'Bern' })).toEqual({
      kind: 'valid',
      value: { city: 'Bern' },
    })
    expect(await schema.validate({ unit: 'K', town: 'Bern' })).toEqual({
      kind: 'invalid',
      problems: expect.arrayContaining([
        "must have required property 'city'",
        'unit: must be one of ["C","F"]',
        'has no property "town"',
      ]),
    })
  })

  it('by an AI SDK schema: its own validate, or its JSON schema; lazily where it is a function', async () => {
    const jsonSchema = { type: 'object', required: ['city'] }
    const validate = async (value: unknown) =>
      value === 'right'
        ? { success: true, value: 'read' }
        : { success: false, error: new Error('not right') }
    const own = await readSchema({ jsonSchema, validate })
    expect(await own.validate('right')).toEqual({ kind: 'valid', value: 'read' })
    expect(await own.validate('left')).toEqual({ kind: 'invalid', problems: ['not right'] })
    const lazy = await readSchema(() => ({ jsonSchema: Promise.resolve(jsonSchema) }))
    expect((await lazy.validate({})).kind).toBe('invalid')
    expect(lazy.parameters).toEqual(jsonSchema)
  })

  it('two schemas with one $id do not disturb each other', async () => {
    const one = await readSchema({ $id: 'x', type: 'object', required: ['a'] })
    const two = await readSchema({ $id: 'x', type: 'object', required: ['b'] })
    expect((await one.validate({ a: 1 })).kind).toBe('valid')
    expect((await two.validate({ a: 1 })).kind).toBe('invalid')
  })
})
