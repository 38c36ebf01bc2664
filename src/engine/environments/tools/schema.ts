import type { $ZodType } from 'zod/v4/core'
import type { StandardIssue, StandardSchema } from '../../../base/core/tool.ts'
import { isRecord, type JsonSchema, validatorOf } from './json-schema.ts'
import { readZod } from './zod-parameters.ts'

/** A schema that has been read: what the policy sees of it, and how it checks a value. */
export interface InputSchema {
  readonly parameters: JsonSchema
  /** Synchronous if the schema is. */
  validate(value: unknown): Validation | Promise<Validation>
}

/** What checking a value gave. */
export type Validation =
  | { readonly kind: 'valid'; readonly value: unknown }
  | { readonly kind: 'invalid'; readonly problems: readonly string[] }

const known = new WeakMap<object, Promise<InputSchema>>()

/**
 * Reads the schema of a tool's input: zod 4, another Standard Schema that can tell its JSON
 * schema, an AI SDK schema (`jsonSchema()`, or a function that gives one), or plain JSON schema.
 */
export function readSchema(schema: unknown): Promise<InputSchema> {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) {
    return Promise.reject(new TypeError(`inputSchema is ${String(schema)}, not a schema.`))
  }
  const before = known.get(schema)
  if (before) return before
  const read = readAnySchema(schema)
  known.set(schema, read)
  return read
}

async function readAnySchema(schema: object): Promise<InputSchema> {
  if (isStandardSchema(schema)) {
    const { jsonSchema, checkedBy } = readStandard(schema)
    const parameters = toParameters(jsonSchema)
    return { parameters, validate: value => whenChecked(check(checkedBy, value)) }
  }
  if (typeof schema === 'function') return await readSchema(schema())
  if ('jsonSchema' in schema) return await readAiSchema(schema)
  if (!isRecord(schema)) throw new TypeError('inputSchema is a list, not a schema.')
  return fromJsonSchema(schema)
}

/** Whether a value keeps the Standard Schema promise. */
function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard: unknown = Reflect.get(value, '~standard')
  return isRecord(standard) && typeof standard.validate === 'function'
}

function check(schema: StandardSchema, value: unknown) {
  return schema['~standard'].validate(value)
}

function whenChecked(checked: ReturnType<typeof check>): Validation | Promise<Validation> {
  return checked instanceof Promise ? checked.then(fromStandard) : fromStandard(checked)
}

function fromStandard(result: Awaited<ReturnType<typeof check>>): Validation {
  return result.issues === undefined
    ? { kind: 'valid', value: result.value }
    : { kind: 'invalid', problems: result.issues.map(describeIssue) }
}

/** One thing wrong with a value, with the path to it. */
export function describeIssue({ path, message }: StandardIssue): string {
  const keys = (path ?? []).map(key => String(typeof key === 'object' ? key.key : key))
  return keys.length > 0 ? `${keys.join('.')}: ${message}` : message
}

function readStandard(schema: StandardSchema): {
  readonly jsonSchema: unknown
  readonly checkedBy: StandardSchema
} {
  if ('_zod' in schema) return readZod(schema as StandardSchema & $ZodType)
  return { jsonSchema: jsonSchemaOf(schema), checkedBy: schema }
}

function jsonSchemaOf(schema: StandardSchema): unknown {
  const { vendor } = schema['~standard']
  const converter: unknown = Reflect.get(schema['~standard'], 'jsonSchema')
  if (isRecord(converter) && typeof converter.input === 'function') {
    return converter.input({ target: 'draft-2020-12' })
  }
  if ('toJsonSchema' in schema && typeof schema.toJsonSchema === 'function') {
    return schema.toJsonSchema()
  }
  throw new TypeError(
    `This ${vendor} schema cannot tell its JSON schema, which policies are shown${vendor === 'zod' ? ': it is of zod 3, `npm i zod@4`' : ''}. Give a schema ` +
      'of zod 4, one with ~standard.jsonSchema or toJsonSchema(), an AI SDK jsonSchema(), or plain JSON schema.',
  )
}

async function readAiSchema(schema: object): Promise<InputSchema> {
  const json: unknown = await Reflect.get(schema, 'jsonSchema')
  const validate: unknown = Reflect.get(schema, 'validate')
  if (!isRecord(json)) throw new TypeError('jsonSchema of this inputSchema is not an object.')
  if (typeof validate !== 'function') return fromJsonSchema(json)
  return {
    parameters: toParameters(json),
    async validate(value) {
      const result: unknown = await validate.call(schema, value)
      if (isRecord(result) && result.success === true) return { kind: 'valid', value: result.value }
      const problem = isRecord(result) ? result.error : result
      return {
        kind: 'invalid',
        problems: [problem instanceof Error ? problem.message : 'not valid'],
      }
    },
  }
}

function fromJsonSchema(schema: JsonSchema): InputSchema {
  const parameters = toParameters(schema)
  const problemsOf = validatorOf(schema)
  return {
    parameters,
    validate(value) {
      const problems = problemsOf(value)
      return problems.length === 0 ? { kind: 'valid', value } : { kind: 'invalid', problems }
    },
  }
}

/** The schema as policies see it: it must be an object's; `$schema` is left out. */
function toParameters(schema: unknown): JsonSchema {
  if (!isRecord(schema)) throw new TypeError('The JSON schema of an inputSchema is not an object.')
  const { $schema: _, ...parameters } = schema
  if (parameters.type !== undefined && parameters.type !== 'object') {
    throw new TypeError(`inputSchema describes a ${parameters.type}; a tool's input is an object.`)
  }
  return parameters
}
