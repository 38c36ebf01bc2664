import type { Statement } from '@espalier/text/python'
import { call } from '../call.ts'
import {
  BuiltinClass,
  type ClassKind,
  ClassMethod,
  EnumMember,
  ProgramClass,
  ProgramFunction,
  Property,
  type Value,
} from '../values.ts'
import { compileExpression, type Evaluate } from './expression.ts'
import { docOf } from './function.ts'
import { Frame, type Scope } from './scope.ts'
import { compileBlock } from './statement.ts'

/** Turns a `class` into a function that makes the class. */
export function compileClass(
  { name, bases, body }: Extract<Statement, { kind: 'class' }>,
  scope: Scope,
): Evaluate {
  const above = bases
    .filter(base => base.name === undefined)
    .map(base => compileExpression(base.value, scope))
  const { module } = scope
  const inner: Scope = { module, parent: scope, qualifier: `${scope.qualifier}${name}.` }
  const run = compileBlock(body, inner)
  const doc = docOf(body)
  return frame => {
    const attributes = new Map<string, Value>()
    const parents = above.map(base => base(frame))
    const inside = Frame.named(attributes, frame)
    run(inside)
    const annotations = inside.annotations ?? new Map()
    return defineClass({ name, module: module.name, bases: parents, attributes, annotations, doc })
  }
}

interface ClassParts {
  readonly name: string
  readonly module: string
  readonly bases: readonly Value[]
  readonly attributes: Map<string, Value>
  readonly annotations: ReadonlyMap<string, Value>
  readonly doc: string | null
}

function defineClass(parts: ClassParts): ProgramClass {
  const kind = kindOf(parts.bases)
  const isText = parts.bases.some(base => base instanceof BuiltinClass && base.name === 'str')
  const made = new ProgramClass({ ...parts, kind, isText })
  for (const [name, value] of made.attributes) {
    ownFunction(value, made)
    if (kind === 'enum' && isMemberValue(value)) {
      made.attributes.set(name, new EnumMember(made, name, value))
    }
  }
  const prepare = made.find('__prepare_class__')
  if (prepare !== undefined) call(prepare, [made])
  return made
}

function kindOf(bases: readonly Value[]): ClassKind {
  for (const base of bases) {
    if (base instanceof ProgramClass && base.kind !== 'plain') return base.kind
  }
  return 'plain'
}

/** Tells a function which class it is defined in. */
function ownFunction(value: Value, owner: ProgramClass): void {
  if (value instanceof ProgramFunction) value.owner ??= owner
  else if (value instanceof ClassMethod) ownFunction(value.called, owner)
  else if (value instanceof Property) ownFunction(value.getter, owner)
}

const isMemberValue = (value: Value): boolean => typeof value !== 'object'
