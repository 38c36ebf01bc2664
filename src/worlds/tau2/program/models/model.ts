import { call } from '../call.ts'
import { copyDeeply } from '../library/copy.ts'
import { TypeForm } from '../type-form.ts'
import { type Dict, ELLIPSIS, Instance, Opaque, type ProgramClass, type Value } from '../values.ts'
import { checkFor } from './check.ts'
import { Refusal, refuse } from './refusal.ts'
import type { Check } from './scalars.ts'

/** What `Field(…)` says of a field. */
export class FieldInfo extends Opaque {
  readonly parts: ReadonlyMap<string, Value>
  constructor(parts: ReadonlyMap<string, Value>) {
    super('FieldInfo', parts)
    this.parts = parts
  }
}

/** A field of a model. */
export interface Field {
  readonly name: string
  readonly annotation: Value
  readonly check: Check
  readonly isRequired: boolean
  readonly info: FieldInfo
  /** The value if none is given. */
  preset(): Value | Refusal
}

/** A model's fields, in order. */
export interface ModelShape {
  readonly fields: ReadonlyMap<string, Field>
  /** Whether unknown members are refused rather than dropped. */
  readonly isClosed: boolean
}

const shapes = new WeakMap<ProgramClass, ModelShape>()

/** The fields of a model, those of the models above it first. */
export function shapeOf(model: ProgramClass): ModelShape {
  let shape = shapes.get(model)
  if (shape === undefined) {
    shape = makeShape(model)
    shapes.set(model, shape)
  }
  return shape
}

function makeShape(model: ProgramClass): ModelShape {
  const fields = new Map<string, Field>()
  for (const one of [...model.lineage].reverse()) {
    for (const [name, annotation] of one.annotations) {
      if (name === 'model_config') continue
      fields.set(name, makeField(name, annotation, one.attributes.get(name)))
    }
  }
  const config = model.find('model_config')
  return { fields, isClosed: config instanceof Map && config.get('extra') === 'forbid' }
}

const NOTHING = new FieldInfo(new Map())

function makeField(name: string, annotation: Value, preset: Value | undefined): Field {
  const written = preset instanceof FieldInfo ? preset : annotatedInfo(annotation)
  const info = written ?? NOTHING
  const check = checkFor(annotation)
  const stated =
    preset instanceof FieldInfo || preset === undefined ? info.parts.get('default') : preset
  const factory = info.parts.get('default_factory')
  const isRequired = factory === undefined && (stated === undefined || stated === ELLIPSIS)
  const isChecked = info.parts.get('validate_default') === true
  return {
    name,
    annotation,
    check,
    isRequired,
    info,
    preset: () => {
      if (factory !== undefined) return call(factory)
      const value = copyDeeply(stated as Value)
      return isChecked ? check(value) : value
    },
  }
}

/** The `Field(…)` inside an `Annotated[…]`. */
export function annotatedInfo(annotation: Value): FieldInfo | undefined {
  if (!(annotation instanceof TypeForm) || annotation.kind !== 'annotated') return undefined
  const own = annotation.items.find(item => item instanceof FieldInfo)
  return own as FieldInfo | undefined
}

/** Makes an instance from a dict, every field checked. */
export function fillModel(model: ProgramClass, given: Dict): Instance | Refusal {
  const { fields, isClosed } = shapeOf(model)
  const filled = new Map<string, Value>()
  const problems: Refusal[] = []
  let found = 0
  for (const field of fields.values()) {
    const value = given.get(field.name)
    if (value !== undefined) found++
    const result = value === undefined ? absent(field, given) : field.check(value)
    if (result instanceof Refusal) problems.push(result.at(field.name))
    else filled.set(field.name, result)
  }
  if (isClosed && found < given.size) {
    for (const [name, value] of given) {
      if (fields.has(name as string)) continue
      problems.push(
        refuse('extra_forbidden', 'Extra inputs are not permitted', value).at(String(name)),
      )
    }
  }
  if (problems.length > 0) return new Refusal(problems.flatMap(one => one.problems))
  return new Instance(model, filled)
}

function absent(field: Field, given: Dict): Value | Refusal {
  return field.isRequired ? refuse('missing', 'Field required', given) : field.preset()
}
