import { argument } from '../arguments.ts'
import { copyDeeply } from '../library/copy.ts'
import {
  ClassMethod,
  type Dict,
  ExceptionClass,
  Instance,
  Module,
  type Named,
  Native,
  ProgramClass,
  PythonTuple,
  typeError,
  type Value,
} from '../values.ts'
import { checkFor } from './check.ts'
import { FieldInfo, fillModel } from './model.ts'
import { Refusal, validationError } from './refusal.ts'

/** A model as plain values, its order of fields kept; members of enums and dates stay what they are. */
export function dump(value: Value): Value {
  if (value instanceof Instance && value.class.kind === 'model') return dumpModel(value)
  if (Array.isArray(value)) return value.map(dump)
  if (value instanceof PythonTuple) return new PythonTuple(value.items.map(dump))
  if (!(value instanceof Map)) return value
  const dict: Dict = new Map()
  for (const [key, item] of value) dict.set(key, dump(item))
  return dict
}

function dumpModel({ fields }: Instance): Dict {
  const dict: Dict = new Map()
  for (const [name, value] of fields) dict.set(name, dump(value))
  return dict
}

/** Makes a model from a dict, or raises as pydantic does. */
export function validateModel(model: ProgramClass, given: Value): Instance {
  const result = checkFor(model)(given)
  if (result instanceof Refusal) throw validationError(model.name, result)
  return result as Instance
}

function construct(given: readonly Value[], named: Named): Value {
  const [model, ...rest] = given as [ProgramClass, ...Value[]]
  if (rest.length > 0) {
    throw typeError(
      `BaseModel.__init__() takes 1 positional argument but ${rest.length + 1} were given`,
    )
  }
  const result = fillModel(model, new Map(named))
  if (result instanceof Refusal) throw validationError(model.name, result)
  return result
}

/** The class that models inherit from. */
export const baseModel = new ProgramClass({
  name: 'BaseModel',
  module: 'pydantic.main',
  kind: 'model',
  attributes: new Map<string, Value>([
    ['__new__', new Native('BaseModel', construct)],
    ['model_dump', new Native('model_dump', ([self]) => dump(self as Value))],
    // Only ever logged, and nothing is logged here.
    ['model_dump_json', new Native('model_dump_json', () => '')],
    ['model_copy', new Native('model_copy', ([self]) => copyDeeply(self as Value))],
    [
      'model_validate',
      new ClassMethod(
        new Native('model_validate', ([model, value]) =>
          validateModel(model as ProgramClass, value as Value),
        ),
        true,
      ),
    ],
  ]),
})

/** A model that refuses members it has no fields for. */
export const closedModel = new ProgramClass({
  name: 'BaseModelNoExtra',
  module: 'tau2.utils.pydantic_utils',
  kind: 'model',
  bases: [baseModel],
  attributes: new Map<string, Value>([
    ['model_config', new Map<Value, Value>([['extra', 'forbid']])],
  ]),
})

function field(given: readonly Value[], named: Named): FieldInfo {
  const preset = argument(given, named, 0, 'default')
  return new FieldInfo(
    new Map([...named, ...(preset === undefined ? [] : [['default', preset] as const])]),
  )
}

/** As much of pydantic as the models here use. */
export const pydanticModule = new Module(
  'pydantic',
  new Map<string, Value>([
    ['BaseModel', baseModel],
    ['Field', new Native('Field', field)],
    ['ConfigDict', new Native('ConfigDict', (_, named) => new Map(named))],
    ['ValidationError', new ExceptionClass('ValidationError', ['ValueError'])],
  ]),
)
