import { z } from 'zod'

/** So many definitions are remembered; a program that makes more makes each of them anew. */
const mostKnown = 1000

const known = new Map<string, unknown>()

/**
 * The JSON schema of a zod schema. Tools that are made while a world opens have a schema of their own in
 * every attempt, and most say the same: what such a one is converted to is found by what it is defined as.
 */
export function zodJsonSchema(schema: z.core.$ZodType): unknown {
  const key = keyOf(schema)
  if (key === undefined) return convert(schema)
  const before = known.get(key)
  if (before !== undefined) return before
  const converted = convert(schema)
  if (known.size >= mostKnown) known.clear()
  known.set(key, converted)
  return converted
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

/** A schema as text; undefined where something in it is more than words, numbers and further schemas. */
function keyOf(schema: z.core.$ZodType): string | undefined {
  const internals: z.core.$ZodTypeInternals = schema._zod
  if (!plainKinds.has(internals.def.type) || 'toJSONSchema' in internals) return undefined
  const about = z.globalRegistry.get(schema)
  // What has a name is written once and referred to.
  if (about?.id !== undefined) return undefined
  const defined = textOfDefinition(internals.def)
  return defined === undefined ? undefined : `(${about ? JSON.stringify(about) : ''}${defined})`
}

function textOfDefinition(definition: object): string | undefined {
  const seen = Object.entries(definition).filter(([name]) => !unseen.has(name))
  return textOfEntries(seen.filter(([, value]) => value !== undefined))
}

function textOfEntries(entries: readonly (readonly [string, unknown])[]): string | undefined {
  const texts: string[] = []
  for (const [name, value] of entries) {
    const text = textOf(value)
    if (text === undefined) return undefined
    texts.push(`${JSON.stringify(name)}:${text}`)
  }
  return `{${texts.join()}}`
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    return JSON.stringify(value)
  }
  if (typeof value !== 'object' || value === null) return undefined
  if ('_zod' in value) return textOfZod(value as z.core.$ZodType | z.core.$ZodCheck)
  // A pattern, a date and the like are not told by their fields.
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype
  return isPlain ? textOfEntries(Object.entries(value)) : undefined
}

/** Checks that are no schemas themselves are told by their definition too; one of the user's own is a function. */
function textOfZod(value: z.core.$ZodType | z.core.$ZodCheck): string | undefined {
  const { def } = value._zod
  return 'type' in def ? keyOf(value as z.core.$ZodType) : textOfDefinition(def)
}
