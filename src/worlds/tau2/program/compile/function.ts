import type { Block, Expression, FunctionShape, Parameter, Statement } from '@espalier/text/python'
import { type BoundParameter, type FunctionPlan, ProgramFunction, type Value } from '../values.ts'
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
  const { parameters, name } = shape
  const ready = parameters.map(parameter => readyParameter(parameter, scope))
  // Most lambdas have no defaults or annotations to evaluate, so their parameters are made once.
  const isFixed = parameters.every(one => !one.annotation && !one.default)
  const fixed = isFixed ? ready.map(bound => bound(NOWHERE)) : undefined
  const plan: FunctionPlan = {
    name,
    qualifiedName: `${scope.qualifier}${name}`,
    module: scope.module.name,
    doc,
    size,
    isSimple: parameters.every(one => one.kind === 'plain' && !one.default),
    run: (slots, made) => run(new Frame(slots, made.around as Frame, made)),
  }
  return frame =>
    new ProgramFunction(plan, fixed ?? ready.map(bound => bound(frame)), {
      returns: returns?.(frame),
      around: frame,
    })
}

/** A frame for functions that evaluate nothing when they are made. */
const NOWHERE = new Frame([], undefined, undefined)

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
