import type { PythonDict, PythonValue } from '@espalier/text/python'
import { PythonError } from '@espalier/text/python'
import type { Database } from './database.ts'

/** The arguments of a call, by name; every declared one is there. */
export type Input<Name extends string = string> = Readonly<Record<Name, PythonValue>>

/** A tool of tau-bench: what it is called, what it takes, in order, and what it does. */
export interface TauTool {
  readonly name: string
  readonly parameters: readonly string[]
  run(database: Database, input: Input): PythonValue
}

/** Declares a tool; its parameters name the fields of its input. */
export function tauTool<Name extends string>(
  name: string,
  parameters: readonly Name[],
  run: (database: Database, input: Input<Name>) => PythonValue,
): TauTool {
  return { name, parameters, run: run as TauTool['run'] }
}

/** Calls a tool as Python calls a function with keyword arguments, binding errors included. */
export function invoke(
  tool: TauTool,
  database: Database,
  { kwargs, domain }: { readonly kwargs: PythonDict; readonly domain: string },
): PythonValue {
  const input: Record<string, PythonValue> = {}
  let found = 0
  for (const name of tool.parameters) {
    const value = kwargs.get(name)
    if (value === undefined) break
    input[name] = value
    found++
  }
  const isBound = found === tool.parameters.length && found === kwargs.size
  if (!isBound) throw explainBinding(tool, kwargs, domain)
  return tool.run(database, input)
}

function explainBinding(tool: TauTool, kwargs: PythonDict, domain: string): PythonError {
  const method = `${className(tool.name)}.invoke()`
  if (kwargs.has('data')) {
    const path = `tau_bench.envs.${domain}.tools.${tool.name}.${method}`
    return bindingError(`${path} got multiple values for keyword argument 'data'`)
  }
  for (const key of kwargs.keys()) {
    if (!tool.parameters.includes(key as string)) {
      return bindingError(`${method} got an unexpected keyword argument '${key}'`)
    }
  }
  return missingError(tool, method, kwargs)
}

/** A tool was called with other arguments than it takes. */
export class BindingError extends PythonError {}

function bindingError(message: string): BindingError {
  return new BindingError('TypeError', message)
}

function missingError(tool: TauTool, method: string, kwargs: PythonDict): PythonError {
  const missing = tool.parameters.filter(name => !kwargs.has(name)).map(name => `'${name}'`)
  const noun = missing.length === 1 ? 'argument' : 'arguments'
  return bindingError(
    `${method} missing ${missing.length} required positional ${noun}: ${listed(missing)}`,
  )
}

function listed(names: readonly string[]): string {
  if (names.length < 3) return names.join(' and ')
  return `${names.slice(0, -1).join(', ')}, and ${names.at(-1)}`
}

/** `cancel_pending_order` is implemented by `CancelPendingOrder`. */
function className(tool: string): string {
  return tool.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
