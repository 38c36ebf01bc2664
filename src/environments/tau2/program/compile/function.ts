import type { Block, Expression, FunctionShape, Parameter, Statement } from '../source/syntax.ts'
import { type BoundParameter, ProgramFunction, type Value } from '../values.ts'
import { compileExpression, type Evaluate } from './expression.ts'
import { boundNames, Frame, type Scope } from './scope.ts'
import { compileBlock } from './statement.ts'

type FunctionStatement = Extract<Statement, { kind: 'function' }>

/** Turns a `def` into a function that makes the function. */
export function compileFunction(statement: FunctionStatement, scope: Scope): Evaluate {
  const { shape, body } = statement
  const places = placesOf(shape, boundNames(body))
  const inner = innerScope(shape.name, places, scope)
  const run = compileBlock(body, inner)
  const returns = statement.returns && compileExpression(statement.returns, scope)
  return make(shape, scope, {
    doc: docOf(body),
    size: places.size,
    run: frame => {
      run(frame)
      return frame.result
    },
    ...(returns && { returns }),
  })
}

/** Turns a `lambda` into a function that makes the function. */
export function compileLambda(
  { shape, body }: Extract<Expression, { kind: 'lambda' }>,
  scope: Scope,
): Evaluate {
  const places = placesOf(shape, new Set())
  const run = compileExpression(body, innerScope(shape.name, places, scope))
  return make(shape, scope, { doc: null, size: places.size, run })
}

function placesOf(
  { parameters }: FunctionShape,
  names: ReadonlySet<string>,
): ReadonlyMap<string, number> {
  const all = new Set([...parameters.map(({ name }) => name), ...names])
  return new Map([...all].map((name, place) => [name, place]))
}

function innerScope(name: string, places: ReadonlyMap<string, number>, outer: Scope): Scope {
  const qualifier = `${outer.qualifier}${name}.<locals>.`
  return { places, parent: outer, module: outer.module, qualifier }
}

/** The text that a body begins with. */
export function docOf([first]: Block): string | null {
  if (first?.kind !== 'expression' || first.value.kind !== 'constant') return null
  return typeof first.value.value === 'string' ? first.value.value : null
}

interface Body {
  readonly doc: string | null
  readonly size: number
  readonly run: Evaluate
  readonly returns?: Evaluate
}

function make(shape: FunctionShape, scope: Scope, { doc, size, run, returns }: Body): Evaluate {
  const parameters = shape.parameters.map(parameter => readyParameter(parameter, scope))
  return frame => {
    const made: ProgramFunction = new ProgramFunction({
      name: shape.name,
      qualifiedName: `${scope.qualifier}${shape.name}`,
      module: scope.module.name,
      parameters: parameters.map(bound => bound(frame)),
      ...(returns && { returns: returns(frame) }),
      doc,
      run: slots => {
        slots.length = size
        return run(new Frame({ slots, parent: frame, running: made }))
      },
    })
    return made
  }
}

function readyParameter(
  { name, kind, ...parameter }: Parameter,
  scope: Scope,
): (frame: Frame) => BoundParameter {
  const annotation = parameter.annotation && compileExpression(parameter.annotation, scope)
  const preset = parameter.default && compileExpression(parameter.default, scope)
  return frame => ({
    name,
    kind,
    ...(annotation && { annotation: annotation(frame) }),
    ...(preset && { default: preset(frame) as Value }),
  })
}
