import type { Form, FormText, JsonSchema } from '../../../base/core/policy.ts'

/** Whether a text can become one of a form, and whether it is one. */
export interface Fit {
  readonly canGrow: boolean
  readonly isWhole: boolean
}

/** How deep values may lie in each other. */
const mostDepth = 64

/**
 * Holds a text, as far as it has come, to a form. JSON is written without white space but for one space behind
 * colons and commas, and the properties of an object stand in their schema's order.
 */
export function fitOf(form: Form, text: string): Fit {
  const fits = form.oneOf.map(one => new Reading(text, one).fit())
  return {
    canGrow: fits.some(({ canGrow }) => canGrow),
    isWhole: fits.some(({ isWhole }) => isWhole),
  }
}

type Ends = readonly number[]
const nowhere: Ends = []

/** One reading of a text: where its parts may end, and whether the text ended within one. */
class Reading {
  readonly #text: string
  readonly #form: FormText
  #canGrow = false

  constructor(text: string, form: FormText) {
    this.#text = text
    this.#form = form
  }

  fit(): Fit {
    const { before, schema, after, writes } = this.#form
    const begun = this.#literal(before, 0)
    const values = begun.flatMap(at =>
      writes === 'keywords' ? this.#keywords(schema, at) : this.#value(schema, at, 0),
    )
    const ends = values.flatMap(at => this.#literal(after, at))
    return { canGrow: this.#canGrow, isWhole: ends.includes(this.#text.length) }
  }

  get #words() {
    return this.#form.writes === 'keywords'
      ? { booleans: ['True', 'False'], nothing: 'None' }
      : { booleans: ['true', 'false'], nothing: 'null' }
  }

  #keywords(schema: JsonSchema, at: number): Ends {
    const properties = Object.entries(resolve(schema, this.#form.schema).properties ?? {})
    const after = (from: number, isFirst: boolean, here: number): Ends => {
      const ends: number[] = []
      for (let next = from; next < properties.length; next++) {
        const [name, value] = properties[next]!
        const told = (isFirst ? [here] : this.#comma(here))
          .flatMap(each => this.#literal(`${name}=`, each))
          .flatMap(each => this.#value(value, each, 1))
        ends.push(...told.flatMap(each => after(next + 1, false, each)))
        if (schema.required?.includes(name)) return ends
      }
      return [...ends, here]
    }
    return after(0, true, at)
  }

  #literal(wanted: string, at: number): Ends {
    if (this.#text.startsWith(wanted, at)) return [at + wanted.length]
    if (wanted.startsWith(this.#text.slice(at))) this.#canGrow = true
    return nowhere
  }

  /** What a pattern takes from here; a prefix of it that ends with the text may grow. */
  #match(whole: RegExp, prefix: RegExp, at: number): Ends {
    const rest = this.#text.slice(at)
    if (prefix.test(rest)) this.#canGrow = true
    const found = whole.exec(rest)?.[0]
    return found === undefined ? nowhere : [at + found.length]
  }

  #value(given: JsonSchema, at: number, depth: number): Ends {
    if (depth > mostDepth) return nowhere
    const schema = resolve(given, this.#form.schema)
    const either = schema.anyOf ?? schema.oneOf
    if (either) return either.flatMap(each => this.#value(each, at, depth + 1))
    const [only] = schema.allOf ?? []
    if (only) return this.#value(only, at, depth + 1)
    const choices = 'const' in schema ? [schema.const] : schema.enum
    if (choices) return choices.flatMap(each => this.#literal(JSON.stringify(each), at))
    const types = typesOf(schema)
    return types.flatMap(type => this.#typed(type, schema, at, depth))
  }

  #typed(type: string, schema: JsonSchema, at: number, depth: number): Ends {
    switch (type) {
      case 'string':
        return this.#string(schema, at)
      case 'integer':
        return this.#match(/^-?(?:0|[1-9]\d{0,14})(?!\d)/, /^-?(?:0|[1-9]\d{0,14})?$/, at)
      case 'number':
        return this.#match(
          /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?(?:[eE][-+]?\d{1,3})?(?![\d.eE])/,
          /^-?(?:(?:0|[1-9]\d{0,14})(?:\.\d{0,15})?|(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?[eE][-+]?\d{0,3})?$/,
          at,
        )
      case 'boolean':
        return this.#words.booleans.flatMap(word => this.#literal(word, at))
      case 'null':
        return this.#literal(this.#words.nothing, at)
      case 'array':
        return this.#literal('[', at).flatMap(from => this.#items(schema, from, 0, depth))
      default:
        return this.#literal('{', at).flatMap(from => this.#object(schema, from, depth))
    }
  }

  #string({ minLength = 0, maxLength = Number.POSITIVE_INFINITY }: JsonSchema, at: number): Ends {
    const rest = this.#text.slice(at)
    const begun =
      /^"((?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)(\\(?:u[0-9a-fA-F]{0,3})?)?("?)/u.exec(
        rest,
      )
    if (!begun) return this.#literal('"', at)
    const [whole, inner = '', half, close] = begun
    const length = inner.replace(/\\(?:u.{4}|.)/g, '.').length
    if (whole === rest && close === '' && length <= maxLength) this.#canGrow = true
    return close === '"' && half === undefined && length >= minLength && length <= maxLength
      ? [at + whole.length]
      : nowhere
  }

  #items(schema: JsonSchema, at: number, count: number, depth: number): Ends {
    const { items = {}, minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema
    const ended = count >= minItems ? this.#literal(']', at) : nowhere
    if (count >= maxItems) return ended
    const from = count === 0 ? [at] : this.#comma(at)
    const more = from.flatMap(each => this.#value(items, each, depth + 1))
    return [...ended, ...more.flatMap(each => this.#items(schema, each, count + 1, depth))]
  }

  #object(schema: JsonSchema, at: number, depth: number): Ends {
    const properties = Object.entries(schema.properties ?? {})
    if (properties.length === 0 && schema.additionalProperties !== false) {
      return this.#anyMembers(schema, at, true, depth)
    }
    return this.#members(schema, properties, at, { from: 0, isFirst: true, depth })
  }

  #members(
    schema: JsonSchema,
    properties: readonly (readonly [string, JsonSchema])[],
    at: number,
    {
      from,
      isFirst,
      depth,
    }: { readonly from: number; readonly isFirst: boolean; readonly depth: number },
  ): Ends {
    const ends: number[] = []
    for (let next = from; next < properties.length; next++) {
      const [name, value] = properties[next]!
      const begun = isFirst ? [at] : this.#comma(at)
      const after = begun
        .flatMap(each => this.#literal(JSON.stringify(name), each))
        .flatMap(each => this.#colon(each))
        .flatMap(each => this.#value(value, each, depth + 1))
      const more = { from: next + 1, isFirst: false, depth }
      ends.push(...after.flatMap(each => this.#members(schema, properties, each, more)))
      // What is required cannot be passed over.
      if (schema.required?.includes(name)) return ends
    }
    return [...ends, ...this.#literal('}', at)]
  }

  #anyMembers(schema: JsonSchema, at: number, isFirst: boolean, depth: number): Ends {
    const { additionalProperties: more } = schema
    const value = typeof more === 'object' ? more : {}
    const after = (isFirst ? [at] : this.#comma(at))
      .flatMap(each => this.#string({}, each))
      .flatMap(each => this.#colon(each))
      .flatMap(each => this.#value(value, each, depth + 1))
      .flatMap(each => this.#anyMembers(schema, each, false, depth))
    return [...after, ...this.#literal('}', at)]
  }

  #comma(at: number): Ends {
    return this.#literal(',', at).flatMap(each => this.#space(each))
  }

  #colon(at: number): Ends {
    return this.#literal(':', at).flatMap(each => this.#space(each))
  }

  #space(at: number): Ends {
    return this.#text[at] === ' ' ? [at + 1] : [at]
  }
}

const everyType = ['string', 'number', 'boolean', 'null', 'array', 'object']

function typesOf({ type, properties, items }: JsonSchema): readonly string[] {
  if (type !== undefined) return [type].flat()
  if (properties) return ['object']
  return items ? ['array'] : everyType
}

/** The schema that a reference within its root leads to. */
function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const { $ref: path } = schema
  if (path === undefined) return schema
  const parts = path.replace(/^#\/?/, '').split('/').filter(Boolean)
  const found = parts.reduce<unknown>(
    (in_, part) => (typeof in_ === 'object' && in_ !== null ? Reflect.get(in_, part) : undefined),
    root,
  )
  return (found as JsonSchema | undefined) ?? {}
}
