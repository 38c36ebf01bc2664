import { attributeOf } from '../attributes.ts'
import {
  BoundMethod,
  type BoundParameter,
  Module,
  Native,
  Opaque,
  orElse,
  ProgramFunction,
  type Value,
} from '../values.ts'

/** Stands where a parameter has no default or annotation. */
const EMPTY = new Opaque('_empty', new Map())

/** The parameters of a function as its caller sees them: of a method without the object itself. */
function parametersOf(called: Value): readonly BoundParameter[] {
  if (called instanceof ProgramFunction) return called.parameters
  if (!(called instanceof BoundMethod) || !(called.called instanceof ProgramFunction)) return []
  return called.called.parameters.slice(1)
}

function signature(called: Value): Value {
  const parameters = parametersOf(called).map(({ name, annotation, default: preset }) => {
    const members = new Map<string, Value>([
      ['name', name],
      ['default', orElse(preset, EMPTY)],
      ['annotation', orElse(annotation, EMPTY)],
    ])
    return [name, new Opaque('Parameter', members)] as const
  })
  return new Opaque('Signature', new Map([['parameters', new Map<Value, Value>(parameters)]]))
}

/** Python's `inspect.cleandoc`: the indentation that all lines but the first share is taken off. */
export function cleanDoc(doc: string): string {
  const lines = doc.replaceAll('\t', '        ').split('\n')
  const indents = lines
    .slice(1)
    .filter(line => line.trim() !== '')
    .map(line => /^\s*/.exec(line)?.[0].length ?? 0)
  const margin = indents.length === 0 ? 0 : Math.min(...indents)
  const cleaned = [
    (lines[0] as string).trimStart(),
    ...lines.slice(1).map(line => line.slice(margin)),
  ]
  while (cleaned.length > 0 && cleaned.at(-1) === '') cleaned.pop()
  while (cleaned.length > 0 && cleaned[0] === '') cleaned.shift()
  return cleaned.join('\n')
}

function getDoc(called: Value): Value {
  const doc = attributeOf(called, '__doc__')
  return typeof doc === 'string' ? cleanDoc(doc) : null
}

/** Python's `inspect`. */
export const inspectModule = new Module(
  'inspect',
  new Map<string, Value>([
    ['signature', new Native('signature', ([called]) => signature(called as Value))],
    ['getdoc', new Native('getdoc', ([called]) => getDoc(called as Value))],
    ['Parameter', new Opaque('type', new Map([['empty', EMPTY]]))],
  ]),
)
