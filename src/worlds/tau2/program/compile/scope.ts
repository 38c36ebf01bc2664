import type { Block, Expression, Statement } from '@espalier/text/python'
import type { Module, ProgramFunction, PythonError, Value } from '../values.ts'

/** The names of a function, a comprehension, a class body or a module, known before it runs. */
export interface Scope {
  /** Where each local lies; absent in class bodies and modules, whose names lie in a map. */
  readonly places?: ReadonlyMap<string, number>
  readonly parent?: Scope
  readonly module: Module
  /** What stands before the name of a function or class defined here, such as `Shop.`. */
  readonly qualifier: string
}

/** The variables of a scope while it runs. */
export class Frame {
  readonly slots: (Value | undefined)[]
  readonly parent: Frame | undefined
  readonly running: ProgramFunction | undefined
  /** Of a class body or a module: its names. */
  names: Map<string, Value> | undefined
  /** Of a class body: the annotations read so far. */
  annotations: Map<string, Value> | undefined
  result: Value = null
  /** What an `except` is handling. */
  handled: PythonError | undefined
  constructor(
    slots: (Value | undefined)[],
    parent: Frame | undefined,
    running: ProgramFunction | undefined,
  ) {
    this.slots = slots
    this.parent = parent
    this.running = running
    this.names = undefined
    this.annotations = undefined
    this.handled = undefined
  }

  /** The frame of a class body or a module, whose names lie in a map. */
  static named(names: Map<string, Value>, parent?: Frame): Frame {
    const frame = new Frame([], parent, undefined)
    frame.names = names
    frame.annotations = new Map()
    return frame
  }
}

/** The names that a block binds, those of nested functions and classes left out. */
export function boundNames(block: Block, into: Set<string> = new Set()): Set<string> {
  for (const statement of block) bindStatement(statement, into)
  return into
}

function bindStatement(statement: Statement, into: Set<string>): void {
  switch (statement.kind) {
    case 'assign':
      for (const target of statement.targets) bindTarget(target, into)
      bindNamed(statement.value, into)
      return
    case 'expression':
      bindNamed(statement.value, into)
      return
    case 'annotate':
    case 'augment':
      bindTarget(statement.target, into)
      return
    case 'for':
      bindTarget(statement.target, into)
      boundNames(statement.body, into)
      boundNames(statement.otherwise, into)
      return
    case 'if':
      bindNamed(statement.condition, into)
      boundNames(statement.yes, into)
      boundNames(statement.no, into)
      return
    case 'while':
      bindNamed(statement.condition, into)
      boundNames(statement.body, into)
      return
    default:
      bindOther(statement, into)
  }
}

function bindOther(statement: Statement, into: Set<string>): void {
  switch (statement.kind) {
    case 'try':
      for (const block of [statement.body, statement.otherwise, statement.finally])
        boundNames(block, into)
      for (const handler of statement.handlers) {
        if (handler.name) into.add(handler.name)
        boundNames(handler.body, into)
      }
      return
    case 'with':
      for (const [, target] of statement.items) if (target) bindTarget(target, into)
      boundNames(statement.body, into)
      return
    case 'function':
      into.add(statement.shape.name)
      return
    case 'class':
      into.add(statement.name)
      return
    case 'import':
      into.add(statement.as)
      return
    case 'import-from':
      for (const [, name] of statement.names) into.add(name)
      return
    default:
  }
}

/** The names that an expression binds with `:=`, inside its parts too. */
function bindNamed(part: Expression | Expression[keyof Expression], into: Set<string>): void {
  if (typeof part !== 'object' || part === null) return
  const { kind, name } = part as { readonly kind?: string; readonly name?: string }
  if (kind === 'named' && name !== undefined) into.add(name)
  if (kind === 'lambda') return
  for (const inner of Object.values(part)) bindNamed(inner, into)
}

/** The names that an assignment to this target binds. */
export function bindTarget(target: Expression, into: Set<string>): void {
  if (target.kind === 'name') into.add(target.name)
  else if (target.kind === 'tuple' || target.kind === 'list') {
    for (const item of target.items) bindTarget(item, into)
  } else if (target.kind === 'starred') bindTarget(target.value, into)
}
