import { z } from 'zod'

/** So many definitions are remembered; a program that makes more makes each of them anew. */
const mostKnown = 1000

/** A zod schema that has been read. */
export interface ReadZod<Schema extends z.core.$ZodType> {
  readonly jsonSchema: unknown
  /** A schema that accepts the same and says the same of the rest: itself, or one that was read before. */
  readonly checkedBy: Schema
}

const known = new Map<string, ReadZod<z.core.$ZodType>>()

/**
 * Reads a zod schema. Tools that are made while a world opens have a schema of their own in every attempt, and most
 * say the same: what such a one is converted to is found by what it is defined as. The first of them also checks what
 * the others should, since zod writes and compiles a function for every schema that checks an object.
 */
export function readZod<Schema extends z.core.$ZodType>(schema: Schema): ReadZod<Schema> {
  const left: Left = { isNothing: true, within: new Set() }
  const text = keyOf(schema, left)
  if (text === undefined) return { jsonSchema: convert(schema), checkedBy: schema }
  const key = left.isNothing ? text : `…${text}`
  const before = known.get(key)
  if (!before) {
    const read = { jsonSchema: convert(schema), checkedBy: schema }
    if (known.size >= mostKnown) known.clear()
    known.set(key, read)
    return read
  }
  // Safe: only a schema of the same kind has the same key.
  const checkedBy = left.isNothing ? (before.checkedBy as Schema) : schema
  return { jsonSchema: before.jsonSchema, checkedBy }
}

function convert(schema: z.core.$ZodType): unknown {
  return z.toJSONSchema(schema, {
    io: 'input',
    override({ jsonSchema }) {
      // The bounds that every z.int() states tell a policy nothing and cost forty tokens.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
    },
  })
}

/** Kinds of schemas whose JSON schema follows from their definition alone. */
const plainKinds: ReadonlySet<string> = new Set([
  'object',
  'array',
  'string',
  'number',
  'boolean',
  'enum',
  'literal',
  'optional',
  'nullable',
])

/** What a definition may say that is in no JSON schema: messages of errors, and when a check is made. */
const unseen: ReadonlySet<string> = new Set(['error', 'when'])

/** What a schema says besides its key. */
interface Left {
  isNothing: boolean
  /** The schemas that are being told: one that contains itself has no end as text. */
  readonly within: Set<z.core.$ZodType>
}

/** A schema as text; undefined if something in it is more than words, numbers and further schemas. */
function keyOf(schema: z.core.$ZodType, left: Left): string | undefined {
  const internals: z.core.$ZodTypeInternals = schema._zod
  if (!plainKinds.has(internals.def.type) || 'toJSONSchema' in internals) return undefined
  const about = z.globalRegistry.get(schema)
  // What has a name is written once and referred to.
  if (about?.id !== undefined) return undefined
  if (left.within.has(schema)) return undefined
  left.within.add(schema)
  const defined = textOfDefinition(internals.def, left)
  left.within.delete(schema)
  return defined === undefined ? undefined : `(${about ? JSON.stringify(about) : ''}${defined})`
}

function textOfDefinition(definition: object, left: Left): string | undefined {
  const said = Object.entries(definition).filter(([, value]) => value !== undefined)
  const seen = said.filter(([name]) => !unseen.has(name))
  if (seen.length < said.length) left.isNothing = false
  return textOfEntries(seen, left)
}

function textOfEntries(
  entries: readonly (readonly [string, unknown])[],
  left: Left,
): string | undefined {
  const texts: string[] = []
  for (const [name, value] of entries) {
    const text = textOf(value, left)
    if (text === undefined) return undefined
    texts.push(`${JSON.stringify(name)}:${text}`)
  }
  return `{${texts.join()}}`
}

function textOf(value: unknown, left: Left): string | undefined {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    return JSON.stringify(value)
  }
  if (typeof value !== 'object' || value === null) return undefined
  if ('_zod' in value) return textOfZod(value as z.core.$ZodType | z.core.$ZodCheck, left)
  // A pattern, a date and the like are not told by their fields.
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype
  return isPlain ? textOfEntries(Object.entries(value), left) : undefined
}

/** Checks that are no schemas themselves are told by their definition too; one of the user's own is a function. */
function textOfZod(value: z.core.$ZodType | z.core.$ZodCheck, left: Left): string | undefined {
  const { def } = value._zod
  return 'type' in def ? keyOf(value as z.core.$ZodType, left) : textOfDefinition(def, left)
}
