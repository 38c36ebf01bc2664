import type { Form } from '../../../base/core/policy.ts'

/** The fields in which servers take a form; none if nothing is asked for. */
interface Fields {
  readonly [name: string]: unknown
}

/** SGLang's, among the sampling parameters. */
export function sglangForm(form: Form | undefined): Fields {
  if (!form) return {}
  const schema = bareSchema(form)
  return schema ? { json_schema: JSON.stringify(schema) } : { structural_tag: tagOf(form) }
}

/** vLLM's, among the sampling parameters; from version 0.11 on. */
export function vllmForm(form: Form | undefined): Fields {
  if (!form) return {}
  const schema = bareSchema(form)
  return { structured_outputs: schema ? { json: schema } : { structural_tag: tagOf(form) } }
}

/** llama.cpp's: it has no form for text around a value but a grammar, which only says that the value is an object. */
export function llamaForm(form: Form | undefined): Fields {
  if (!form) return {}
  const schema = bareSchema(form)
  return schema ? { json_schema: schema } : { grammar: grammarOf(form) }
}

/** The schema of a form that is nothing but one value. */
function bareSchema({ oneOf: [first, ...others] }: Form) {
  return others.length === 0 && first.before === '' && first.after === '' ? first.schema : undefined
}

/** A structural tag as XGrammar reads it, which both SGLang and vLLM use. */
function tagOf({ oneOf }: Form): string {
  const tags = oneOf.map(({ before, schema, after }) => ({
    type: 'tag',
    begin: before,
    content: { type: 'json_schema', json_schema: schema },
    end: after,
  }))
  const format = tags.length === 1 ? tags[0] : { type: 'or', elements: tags }
  return JSON.stringify({ type: 'structural_tag', format })
}

function grammarOf({ oneOf }: Form): string {
  const each = oneOf.map(({ before, after }) => `${quoted(before)} object ${quoted(after)}`)
  return `root ::= ${each.join(' | ')}\n${json}`
}

const quoted = (text: string): string =>
  JSON.stringify(text).replace(/\\u([0-9a-f]{4})/g, '\\x{$1}')

const json = String.raw`value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" (string ":" " "? value ("," " "? string ":" " "? value)*)? "}"
array ::= "[" (value ("," " "? value)*)? "]"
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F]))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
`
