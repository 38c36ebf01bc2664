import { argument } from './program/arguments.ts'
import { attributeOf, setAttribute } from './program/attributes.ts'
import { isIn } from './program/operators.ts'
import {
  EnumMember,
  type Instance,
  Module,
  type Named,
  Native,
  ProgramClass,
  ProgramFunction,
  type Value,
} from './program/values.ts'

/** What a tool is for. */
export type ToolType = 'read' | 'write' | 'think' | 'generic'

/** A tool of a toolkit. */
export interface ToolkitTool {
  readonly name: string
  readonly function: ProgramFunction
  readonly type: ToolType
  /** Whether a replay runs it again. */
  readonly mutates: boolean
  /** Whether it is callable but not advertised. */
  readonly discoverable: boolean
}

const TOOL = '__tool__'
const TYPE = '__tool_type__'
const MUTATES = '__mutates_state__'
const DISCOVERABLE = '__discoverable__'

const toolType = new ProgramClass({
  name: 'ToolType',
  module: 'tau2.environment.toolkit',
  kind: 'enum',
  isText: true,
})
for (const name of ['READ', 'WRITE', 'THINK', 'GENERIC']) {
  toolType.attributes.set(name, new EnumMember(toolType, name, name.toLowerCase()))
}

/** The decorators that mark methods as tools. */
function marker(isDiscoverable: boolean): (given: readonly Value[], named: Named) => Value {
  return (given, named) => {
    const type = (argument(given, named, 0, 'tool_type') ??
      toolType.attributes.get('READ')) as EnumMember
    const mutates = argument(given, named, 1, 'mutates_state') ?? null
    return new Native('decorator', ([method]) => {
      const { attributes } = method as ProgramFunction
      attributes.set(TOOL, true)
      attributes.set(TYPE, type)
      attributes.set(MUTATES, mutates ?? type.value === 'write')
      if (isDiscoverable) attributes.set(DISCOVERABLE, true)
      return method as ProgramFunction
    })
  }
}

const known = new WeakMap<ProgramClass, ReadonlyMap<string, ToolkitTool>>()

/** The tools of a toolkit, its own before those it inherits. */
export function toolsOf(kit: ProgramClass): ReadonlyMap<string, ToolkitTool> {
  let tools = known.get(kit)
  if (tools === undefined) {
    tools = collectTools(kit)
    known.set(kit, tools)
  }
  return tools
}

function collectTools(kit: ProgramClass): ReadonlyMap<string, ToolkitTool> {
  const tools = new Map<string, ToolkitTool>()
  for (const one of kit.lineage) {
    for (const [name, method] of one.attributes) {
      if (!(method instanceof ProgramFunction) || !method.attributes.has(TOOL) || tools.has(name))
        continue
      tools.set(name, {
        name,
        function: method,
        type: (method.attributes.get(TYPE) as EnumMember).value as ToolType,
        mutates: method.attributes.get(MUTATES) === true,
        discoverable: method.attributes.get(DISCOVERABLE) === true,
      })
    }
  }
  return tools
}

function discoverable(kit: Instance): Map<Value, Value> {
  const found = new Map<Value, Value>()
  for (const tool of toolsOf(kit.class).values()) {
    if (tool.discoverable) found.set(tool.name, attributeOf(kit, tool.name))
  }
  return found
}

const base = new ProgramClass({
  name: 'ToolKitBase',
  module: 'tau2.environment.toolkit',
  attributes: new Map<string, Value>([
    [
      '__init__',
      new Native('__init__', (given, named) => {
        setAttribute(given[0] as Value, 'db', argument(given, named, 1, 'db') ?? null)
        return null
      }),
    ],
    [
      'get_discoverable_tools',
      new Native('get_discoverable_tools', ([self]) => discoverable(self as Instance)),
    ],
    [
      'has_discoverable_tool',
      new Native('has_discoverable_tool', ([self, name]) => {
        return isIn(name as Value, discoverable(self as Instance))
      }),
    ],
  ]),
})

/** What the toolkits of a checkout import as `tau2.environment.toolkit`. */
export const toolkitModule = new Module(
  'tau2.environment.toolkit',
  new Map<string, Value>([
    ['ToolKitBase', base],
    ['ToolKitType', null],
    ['ToolType', toolType],
    ['is_tool', new Native('is_tool', marker(false))],
    ['is_discoverable_tool', new Native('is_discoverable_tool', marker(true))],
    ['DISCOVERABLE_ATTR', DISCOVERABLE],
    ['MUTATES_STATE_ATTR', MUTATES],
  ]),
)
