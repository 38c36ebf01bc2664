import { parseModule } from '@espalier/text/python'
import { Frame } from './compile/scope.ts'
import { compileBlock } from './compile/statement.ts'
import { Module, PythonError, type Value } from './values.ts'

/** Where the modules of a program come from. */
export interface ModuleSource {
  /** The source of a module, or `undefined` if there is none. */
  source(name: string): string | undefined
  /** Modules written in TypeScript, by name. */
  readonly library: ReadonlyMap<string, Module>
}

/** The modules of a program, each run once, when it is first asked for. */
export class Modules {
  readonly #from: ModuleSource
  readonly #loaded = new Map<string, Module>()

  constructor(from: ModuleSource) {
    this.#from = from
  }

  /** The module of that name, run if it has not been yet. */
  load(name: string): Module {
    const known = this.#loaded.get(name) ?? this.#from.library.get(name)
    if (known) return known
    const source = this.#from.source(name)
    if (source === undefined) {
      throw new PythonError('ModuleNotFoundError', `No module named '${name}'`)
    }
    const module = new Module(name, new Map<string, Value>([['__name__', name]]))
    this.#loaded.set(name, module)
    homes.set(module, this)
    const run = compileBlock(parseModule(source), { module, qualifier: '' })
    run(Frame.named(module.scope))
    return module
  }
}

/** The program that a module belongs to. */
const homes = new WeakMap<Module, Modules>()

function homeOf(module: Module): Modules {
  return homes.get(module) as Modules
}

/** What `import name` binds. */
export function importModule(from: Module, name: string): Value {
  return homeOf(from).load(name)
}

/** What a statement `from module import name` asks for. */
export interface ImportedName {
  readonly module: string
  /** How many dots stand before the name of the module. */
  readonly level: number
  readonly name: string
}

/** What `from module import name` binds. */
export function importFrom(from: Module, { module, level, name }: ImportedName): Value {
  const path = level === 0 ? module : relative(from.name, level, module)
  const loaded = homeOf(from).load(path)
  const value = loaded.scope.get(name)
  if (value !== undefined) return value
  throw new PythonError('ImportError', `cannot import name '${name}' from '${path}'`)
}

function relative(from: string, level: number, module: string): string {
  const base = from.split('.').slice(0, -level)
  return [...base, ...(module === '' ? [] : [module])].join('.')
}
