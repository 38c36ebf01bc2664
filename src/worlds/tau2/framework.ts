import { parseJson } from '@espalier/text/python'
import { parse as parseToml } from 'smol-toml'
import { fromToml } from './data/toml.ts'
import { argument } from './program/arguments.ts'
import { attributeOf } from './program/attributes.ts'
import { classes } from './program/builtins.ts'
import { call } from './program/call.ts'
import { addNamed } from './program/compile/call.ts'
import { baseModel, closedModel, dump, validateModel } from './program/models/pydantic.ts'
import { isEqual, isTrue, iterate, nameOf } from './program/operators.ts'
import { ProgramPath } from './program/paths.ts'
import { TypeForm } from './program/type-form.ts'
import {
  ClassMethod,
  type Dict,
  type Instance,
  Module,
  type Named,
  Native,
  ProgramClass,
  PythonError,
  type Value,
} from './program/values.ts'
import { toolkitModule } from './toolkit.ts'

/** Reads a file of a checkout by its path in `data/`. */
export type ReadData = (path: string) => string

/** Stands for the folder `data/` of a checkout. */
const DATA = 'data'

/** A file of data, read by what its name ends with. */
export function readDataFile(read: ReadData, path: string): Value {
  const text = read(path)
  if (path.endsWith('.json')) return parseJson(text) as Value
  return path.endsWith('.toml') ? fromToml(parseToml(text, { integersAsBigInt: true })) : text
}

/** The modules of the original's frame that its domains import, as far as they use them. */
export function frameworkModules(read: ReadData): readonly Module[] {
  const files = new Map<string, Value>()
  const load = (path: Value): Value => {
    const name = (path as ProgramPath).text.slice(DATA.length + 1)
    let value = files.get(name)
    if (value === undefined) {
      value = readDataFile(read, name)
      files.set(name, value)
    }
    return value
  }
  const root = new ProgramPath(DATA)
  const db = new ProgramClass({
    name: 'DB',
    module: 'tau2.environment.db',
    kind: 'model',
    bases: [closedModel],
    attributes: new Map<string, Value>([
      [
        'load',
        new ClassMethod(
          new Native('load', ([of, path]) =>
            validateModel(of as ProgramClass, load(path as Value)),
          ),
          true,
        ),
      ],
    ]),
  })
  const loadFile = new Native('load_file', ([path]) => load(path as Value))
  return [
    toolkitModule,
    module('tau2.environment.db', { DB: db }),
    module('tau2.environment.environment', { Environment: environmentClass }),
    module('tau2.utils', { DATA_DIR: root, load_file: loadFile }),
    module('tau2.utils.utils', { DATA_DIR: root }),
    module('tau2.utils.pydantic_utils', {
      BaseModelNoExtra: closedModel,
      update_pydantic_model_with_dict: new Native(
        'update_pydantic_model_with_dict',
        ([model, data]) => updated(model as Instance, data as Dict),
      ),
    }),
    module('tau2.data_model.message', {
      ToolCall: toolCall,
      Message: new TypeForm('any', 'Any'),
      ToolRequestor: new TypeForm('any', 'Any'),
    }),
  ]
}

const module = (name: string, members: Readonly<Record<string, Value>>): Module =>
  new Module(name, new Map(Object.entries(members)))

/** A model with some of its values replaced, dicts merged into dicts. */
function updated(model: Instance, data: Dict): Instance {
  return validateModel(model.class, merged(dump(model) as Dict, data))
}

/** A dict with another merged into it: dicts into dicts, everything else replaced. */
export function merged(into: Dict, from: Dict): Dict {
  for (const [key, value] of from) {
    const before = into.get(key)
    into.set(key, before instanceof Map && value instanceof Map ? merged(before, value) : value)
  }
  return into
}

const toolCall = new ProgramClass({
  name: 'ToolCall',
  module: 'tau2.data_model.message',
  kind: 'model',
  bases: [baseModel],
  attributes: new Map<string, Value>([
    ['id', ''],
    ['requestor', 'assistant'],
  ]),
  annotations: new Map<string, Value>([
    ['id', classes.str as Value],
    ['name', classes.str as Value],
    ['arguments', classes.dict as Value],
    ['requestor', classes.str as Value],
  ]),
})

/** Calls a method of an object of the program. */
export function callMethod(object: Value, name: string, named: Named = new Map()): Value {
  return call(attributeOf(object, name), [], named)
}

/** Runs a function that a task names, any method of a toolkit, and syncs. */
export function runFunctionCall(
  environment: Value,
  given: { readonly env_type: Value; readonly func_name: Value; readonly arguments: Value },
): Value {
  const kit = attributeOf(environment, given.env_type === 'user' ? 'user_tools' : 'tools')
  const method = attributeOf(kit, given.func_name as string)
  const named = new Map<string, Value>()
  addNamed(method, given.arguments, named)
  const result = call(method, [], named)
  callMethod(environment, 'sync_tools')
  return result
}

function functionCall(environment: Value, stated: Instance): Value {
  const read = (name: string): Value => stated.fields.get(name) ?? null
  return runFunctionCall(environment, {
    env_type: read('env_type'),
    func_name: read('func_name'),
    arguments: read('arguments'),
  })
}

/** Whether what a function returned is what a task asserts; anything but a bool raises. */
export function isAsserted(result: Value, wanted: Value, name: Value): boolean {
  if (typeof result !== 'boolean') {
    throw new PythonError(
      'ValueError',
      `Function ${name as string} returned <class '${nameOf(result)}'> instead of bool`,
    )
  }
  return isEqual(result, wanted)
}

function assertion([environment, stated]: readonly Value[], named: Named): Value {
  const of = stated as Instance
  const holds = isAsserted(
    functionCall(environment as Value, of),
    of.fields.get('assert_value') ?? true,
    of.fields.get('func_name') ?? '',
  )
  if (!holds && isTrue(named.get('raise_assertion_error') ?? true)) {
    throw new PythonError(
      'AssertionError',
      String(of.fields.get('message') ?? `Assertion failed: ${of.type}`),
    )
  }
  return holds
}

function functionCalls([environment, calls]: readonly Value[]): Value {
  for (const stated of iterate(calls as Value)) {
    const isAssertion = (stated as Instance).class.name === 'EnvAssertion'
    if (isAssertion) assertion([environment as Value, stated], new Map())
    else functionCall(environment as Value, stated as Instance)
  }
  return null
}

const FIELDS = ['domain_name', 'policy', 'tools', 'user_tools', 'solo_mode'] as const

/** The class that environments of domains inherit from. */
const environmentClass = new ProgramClass({
  name: 'Environment',
  module: 'tau2.environment.environment',
  attributes: new Map<string, Value>([
    [
      '__init__',
      new Native('__init__', (given, named) => {
        const self = given[0] as Instance
        for (const [at, name] of FIELDS.entries())
          self.fields.set(name, argument(given, named, at + 1, name) ?? null)
        callMethod(self, 'sync_tools')
        return null
      }),
    ],
    ['sync_tools', new Native('sync_tools', () => null)],
    ['run_env_assertion', new Native('run_env_assertion', assertion)],
    ['run_env_function_calls', new Native('run_env_function_calls', functionCalls)],
    [
      'set_solo_mode',
      new Native('set_solo_mode', ([self, value]) => {
        ;(self as Instance).fields.set('solo_mode', value as Value)
        return null
      }),
    ],
  ]),
})
