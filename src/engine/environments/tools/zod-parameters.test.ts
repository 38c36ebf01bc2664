import { expect, it } from 'vitest'
import { z } from 'zod'
import { readZod } from './zod-parameters.ts'

const zodJsonSchema = (schema: z.core.$ZodType) => readZod(schema).jsonSchema

const page = () =>
  z.object({
    page: z.int().min(1).describe('from 1 on'),
    of: z.enum(['book', 'letter']).optional(),
    words: z.array(z.string().max(40)).nullable(),
  })

it('converts schemas that say the same once', () => {
  const converted = zodJsonSchema(page())
  expect(converted).toEqual({
    ...z.toJSONSchema(page(), { io: 'input' }),
    ...(converted as object),
  })
  expect(zodJsonSchema(page())).toBe(converted)
})

it.each([
  ['a description', z.object({ page: z.int().min(1).describe('from 2 on') })],
  ['a bound', z.object({ page: z.int().min(2).describe('from 1 on') })],
  ['a format', z.object({ page: z.number().min(1).describe('from 1 on') })],
  ['a name', z.object({ pages: z.int().min(1).describe('from 1 on') })],
  ['what else may be there', z.strictObject({ page: z.int().min(1).describe('from 1 on') })],
  ['a pattern', z.object({ page: z.string().regex(/^a/) })],
  ['another pattern', z.object({ page: z.string().regex(/^b/) })],
  ['a default', z.object({ page: z.int().default(1) })],
  ['another default', z.object({ page: z.int().default(2) })],
  ['a named part', z.object({ page: z.int().meta({ id: 'zod-parameters-page' }) })],
])('tells schemas apart by %s', (_what, schema) => {
  zodJsonSchema(z.object({ page: z.int().min(1).describe('from 1 on') }))
  const { $schema: _, ...plain } = z.toJSONSchema(schema, { io: 'input' }) as Record<
    string,
    unknown
  >
  const converted = zodJsonSchema(schema) as Record<string, unknown>
  const withoutBounds = (value: unknown): unknown =>
    JSON.parse(
      JSON.stringify(value, (key, each) =>
        (key === 'minimum' || key === 'maximum') && Math.abs(each) === Number.MAX_SAFE_INTEGER
          ? undefined
          : each,
      ),
    )
  expect(converted).toMatchObject(withoutBounds(plain) as object)
  expect(withoutBounds(plain)).toMatchObject(
    withoutBounds({ ...converted, $schema: undefined }) as object,
  )
})

it('has schemas that say the same checked by the first of them', () => {
  const first = z.object({ page: z.int(), of: z.string().optional() })
  const { checkedBy } = readZod(z.object({ page: z.int(), of: z.string().optional() }))
  expect(readZod(first).checkedBy).toBe(checkedBy)
  expect(readZod(z.object({ page: z.int(), of: z.string() })).checkedBy).not.toBe(checkedBy)
})

it.each([
  ['words of their own', () => z.object({ page: z.int('a whole page') })],
  ['words of their own for the whole', () => z.object({ page: z.int() }, 'a page')],
  ['a check that may be made at another time', () => z.object({ page: z.string().min(3) })],
  ['a check of their own', () => z.object({ page: z.int().refine(page => page > 2) })],
  ['what they make of it', () => z.object({ page: z.int().transform(page => page + 1) })],
])('has schemas with %s check for themselves', (_what, make) => {
  readZod(z.object({ page: z.int() }))
  readZod(make())
  const schema = make()
  expect(readZod(schema).checkedBy).toBe(schema)
})

it('reads schemas that contain themselves', () => {
  const branch: z.ZodType = z.object({
    name: z.string(),
    get first() {
      return branch.optional()
    },
    get others() {
      return z.array(branch)
    },
  })
  expect(zodJsonSchema(branch)).toMatchObject({
    properties: { first: { $ref: '#' }, others: { items: { $ref: '#' } } },
  })
})
