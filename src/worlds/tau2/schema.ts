import type { ToolDefinition } from '@espalier/text'
import { toJavaScript } from '@espalier/text/python'
import { readDocstring } from './docstring.ts'
import { jsonable } from './program/library/json.ts'
import { annotatedInfo, type Field, shapeOf } from './program/models/model.ts'
import { membersOf } from './program/operators.ts'
import { repr, showAnnotation } from './program/show.ts'
import { TypeForm } from './program/type-form.ts'
import {
  type BoundParameter,
  BuiltinClass,
  type Dict,
  type Instance,
  ProgramClass,
  type ProgramFunction,
  plain,
  unwrap,
  type Value,
} from './program/values.ts'
import { toolsOf } from './toolkit.ts'

/** The models that a schema has named so far. */
type Definitions = Map<string, Dict>

const dict = (pairs: Readonly<Record<string, Value | undefined>>): Dict =>
  new Map(Object.entries(pairs).filter((pair): pair is [string, Value] => pair[1] !== undefined))

/** Pairs in the order of their keys, as pydantic writes schemas, all but properties. */
function sorted(pairs: Dict): Dict {
  return new Map(
    [...pairs].sort(([left], [right]) => ((left as string) < (right as string) ? -1 : 1)),
  )
}

/** The tool's JSON schema, keys in the order of the original. */
export function toolSchema(tool: ProgramFunction): Dict {
  const doc = readDocstring(tool.doc ?? '')
  const description =
    doc.short === '' ? tool.name : doc.long === '' ? doc.short : `${doc.short}\n\n${doc.long}`
  const parameters = parametersSchema(tool.parameters.slice(1), doc.parameters)
  return dict({ type: 'function', function: dict({ name: tool.name, description, parameters }) })
}

function parametersSchema(
  parameters: readonly BoundParameter[],
  described: ReadonlyMap<string, string>,
): Dict {
  const definitions: Definitions = new Map()
  const properties: Dict = new Map()
  for (const { name, annotation, default: preset } of parameters) {
    const extra = dict({
      title: titleOf(name),
      description: described.get(name),
      default: preset === undefined ? undefined : jsonable(preset),
    })
    properties.set(name, propertySchema(annotation ?? null, extra, definitions))
  }
  const required = parameters
    .filter(one => one.default === undefined)
    .map(({ name }) => name as Value)
  return objectSchema({ title: 'parameters', properties, required, definitions })
}

interface ObjectParts {
  readonly title: string
  readonly properties: Dict
  readonly required: Value[]
  readonly definitions?: Definitions
  readonly description?: string
  readonly isClosed?: boolean
}

function objectSchema({
  title,
  properties,
  required,
  definitions,
  description,
  isClosed,
}: ObjectParts): Dict {
  const defined =
    definitions && definitions.size > 0
      ? new Map<Value, Value>([...definitions].sort(([left], [right]) => (left < right ? -1 : 1)))
      : undefined
  return dict({
    $defs: defined,
    additionalProperties: isClosed ? false : undefined,
    description,
    properties,
    required: required.length === 0 ? undefined : required,
    title,
    type: 'object',
  })
}

/** `payment_method_id` is titled `Payment Method Id`. */
const titleOf = (name: string): string =>
  name
    .split('_')
    .map(word => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase())
    .join(' ')

/** A reference has no title; everything else has one. */
function propertySchema(annotation: Value, extra: Dict, definitions: Definitions): Dict {
  const schema = typeSchema(annotation, definitions)
  const own = new Map(extra)
  if (schema.has('$ref')) own.delete('title')
  const isUnion = annotation instanceof TypeForm && annotation.kind === 'annotated'
  const info = isUnion ? annotatedInfo(annotation)?.parts.get('description') : undefined
  if (info !== undefined && !own.has('description')) own.set('description', info)
  return sorted(new Map([...schema, ...own]))
}

const SCALARS: Readonly<Record<string, Dict>> = {
  str: dict({ type: 'string' }),
  int: dict({ type: 'integer' }),
  float: dict({ type: 'number' }),
  bool: dict({ type: 'boolean' }),
  dict: dict({ additionalProperties: true, type: 'object' }),
  list: dict({ items: new Map(), type: 'array' }),
  date: dict({ format: 'date', type: 'string' }),
  datetime: dict({ format: 'date-time', type: 'string' }),
}

function typeSchema(annotation: Value, definitions: Definitions): Dict {
  if (annotation === null) return dict({ type: 'null' })
  if (annotation instanceof BuiltinClass) return new Map(SCALARS[annotation.name] ?? [])
  if (annotation instanceof ProgramClass) return referenceTo(annotation, definitions)
  if (annotation instanceof TypeForm) return formSchema(annotation, definitions)
  return new Map()
}

function formSchema({ kind, items }: TypeForm, definitions: Definitions): Dict {
  const of = (at: number): Dict => typeSchema(items[at] as Value, definitions)
  switch (kind) {
    case 'list':
      return dict({ items: items.length === 0 ? new Map() : of(0), type: 'array' })
    case 'dict':
      return dict({ additionalProperties: items.length === 0 ? true : of(1), type: 'object' })
    case 'union':
      return dict({ anyOf: items.map(item => typeSchema(item, definitions)) })
    case 'literal':
      return items.length === 1
        ? dict({ const: items[0], type: 'string' })
        : dict({ enum: [...items], type: 'string' })
    case 'annotated':
      return of(0)
    default:
      return new Map()
  }
}

/** A model or an enum is described once, under its name. */
function referenceTo(of: ProgramClass, definitions: Definitions): Dict {
  if (!definitions.has(of.name)) {
    definitions.set(of.name, new Map())
    definitions.set(of.name, of.kind === 'enum' ? enumSchema(of) : modelSchema(of, definitions))
  }
  return dict({ $ref: `#/$defs/${of.name}` })
}

function enumSchema(of: ProgramClass): Dict {
  return sorted(
    dict({
      enum: membersOf(of).map(member => member.value),
      title: of.name,
      type: 'string',
      description: of.doc ?? undefined,
    }),
  )
}

function modelSchema(of: ProgramClass, definitions: Definitions): Dict {
  const { fields, isClosed } = shapeOf(of)
  const properties: Dict = new Map()
  for (const field of fields.values()) properties.set(field.name, fieldSchema(field, definitions))
  return objectSchema({
    title: of.name,
    properties,
    required: [...fields.values()].filter(field => field.isRequired).map(({ name }) => name),
    isClosed,
    ...(of.doc !== null && { description: readDescription(of.doc) }),
  })
}

const readDescription = (doc: string): string => {
  const lines = doc.split('\n').map(line => line.trim())
  return lines.join('\n').trim()
}

function fieldSchema(field: Field, definitions: Definitions): Dict {
  const preset =
    field.isRequired || field.info.parts.has('default_factory')
      ? undefined
      : unwrap(field.preset() as Value)
  const description = field.info.parts.get('description')
  return propertySchema(
    field.annotation,
    dict({ title: titleOf(field.name), description, default: preset }),
    definitions,
  )
}

/** The tools that a toolkit advertises, in order. */
export function advertised(kit: Instance): readonly ProgramFunction[] {
  return [...toolsOf(kit.class).values()]
    .filter(tool => !tool.discoverable)
    .map(tool => tool.function)
}

/** The definitions of the tools that a toolkit advertises. */
export function toolDefinitions(kit: Instance): readonly ToolDefinition[] {
  return advertised(kit).map(tool => toJavaScript(plain(toolSchema(tool))) as ToolDefinition)
}

/** A tool as Python prints it: its head and its documentation. */
export function toolText(tool: ProgramFunction): string {
  return `def ${tool.name}${signatureText(tool)}:\n    """${tool.doc ?? 'None'}"""`
}

function signatureText({ parameters, returns }: ProgramFunction): string {
  const shown = parameters.slice(1).map(({ name, annotation, default: preset }) => {
    const type = annotation === undefined ? '' : `: ${showAnnotation(annotation)}`
    if (preset === undefined) return `${name}${type}`
    return `${name}${type}${type === '' ? '=' : ' = '}${repr(preset)}`
  })
  return `(${shown.join(', ')})${returns === undefined ? '' : ` -> ${showAnnotation(returns)}`}`
}

/** The tools of a side by name with the first line of each. */
export function toolsDescription(kit: Instance): string {
  const tools = [...advertised(kit)].sort((left, right) => (left.name < right.name ? -1 : 1))
  return tools
    .map((tool, index) => `${index + 1}. ${tool.name}\n${readDocstring(tool.doc ?? '').short}`)
    .join('\n\n')
}
