import {
  type BinaryOperator,
  type Block,
  type Expression,
  SourceError,
  type Statement,
} from '@espalier/text/python'
import { attributeOf, setAttribute } from '../attributes.ts'
import { call } from '../call.ts'
import { importFrom, importModule } from '../imports.ts'
import { deleteItem, itemOf, setItem } from '../items.ts'
import { isCaught, isTrue, iterate, operate } from '../operators.ts'
import { str } from '../show.ts'
import { ExceptionClass, PythonError, PythonTuple, type Value } from '../values.ts'
import { touch } from '../versions.ts'
import { compileClass } from './class.ts'
import { compileExpression } from './expression.ts'
import { compileFunction } from './function.ts'
import type { Frame, Scope } from './scope.ts'
import { assignTo, assignToName } from './target.ts'

/** How a statement ended. */
export type Signal = 'next' | 'break' | 'continue' | 'return'

/** A statement ready to run. */
export type Execute = (frame: Frame) => Signal

/** Turns statements into one function that runs them. */
export function compileBlock(block: Block, scope: Scope): Execute {
  const statements = block.map(statement => compileStatement(statement, scope))
  return frame => {
    for (const statement of statements) {
      const signal = statement(frame)
      if (signal !== 'next') return signal
    }
    return 'next'
  }
}

function compileStatement(statement: Statement, scope: Scope): Execute {
  const each = (inner: Expression) => compileExpression(inner, scope)
  switch (statement.kind) {
    case 'expression': {
      const value = each(statement.value)
      return frame => {
        value(frame)
        return 'next'
      }
    }
    case 'assign': {
      const value = each(statement.value)
      const targets = statement.targets.map(target => assignTo(target, scope))
      return frame => {
        const assigned = value(frame)
        for (const target of targets) target(frame, assigned)
        return 'next'
      }
    }
    case 'return': {
      const value = statement.value && each(statement.value)
      return frame => {
        frame.result = value ? value(frame) : null
        return 'return'
      }
    }
    case 'if': {
      const [condition, yes, no] = [
        each(statement.condition),
        compileBlock(statement.yes, scope),
        compileBlock(statement.no, scope),
      ]
      return frame => (isTrue(condition(frame)) ? yes(frame) : no(frame))
    }
    case 'pass':
      return () => 'next'
    case 'break':
    case 'continue': {
      const { kind } = statement
      return () => kind
    }
    case 'for':
    case 'while':
      return statement.kind === 'for'
        ? compileFor(statement, scope)
        : compileWhile(statement, scope)
    default:
      return compileRarer(statement, scope)
  }
}

function compileRarer(statement: Statement, scope: Scope): Execute {
  switch (statement.kind) {
    case 'annotate':
      return compileAnnotated(statement, scope)
    case 'augment':
      return compileAugmented(statement, scope)
    case 'delete':
      return compileDelete(statement.targets, scope)
    case 'raise':
      return compileRaise(statement.value, scope)
    case 'assert':
      return compileAssert(statement, scope)
    case 'try':
      return compileTry(statement, scope)
    case 'function':
    case 'class':
      return compileDefinition(statement, scope)
    case 'import': {
      const assign = assignToName(statement.as, scope)
      return frame => {
        assign(frame, importModule(scope.module, statement.module))
        return 'next'
      }
    }
    case 'import-from': {
      const names = statement.names.map(([name, as]) => [name, assignToName(as, scope)] as const)
      return frame => {
        for (const [name, assign] of names) {
          assign(
            frame,
            importFrom(scope.module, { module: statement.module, level: statement.level, name }),
          )
        }
        return 'next'
      }
    }
    default:
      return () => {
        throw new SourceError(`A "${statement.kind}" is not run here`)
      }
  }
}

function compileFor(statement: Extract<Statement, { kind: 'for' }>, scope: Scope): Execute {
  const source = compileExpression(statement.source, scope)
  const assign = assignTo(statement.target, scope)
  const body = compileBlock(statement.body, scope)
  const otherwise = compileBlock(statement.otherwise, scope)
  return frame => {
    for (const item of iterate(source(frame))) {
      assign(frame, item)
      const signal = body(frame)
      if (signal === 'break') return 'next'
      if (signal === 'return') return signal
    }
    return otherwise(frame)
  }
}

function compileWhile(statement: Extract<Statement, { kind: 'while' }>, scope: Scope): Execute {
  const condition = compileExpression(statement.condition, scope)
  const body = compileBlock(statement.body, scope)
  return frame => {
    while (isTrue(condition(frame))) {
      const signal = body(frame)
      if (signal === 'break') return 'next'
      if (signal === 'return') return signal
    }
    return 'next'
  }
}

/** An annotation is only kept in the body of a class. */
function compileAnnotated(
  statement: Extract<Statement, { kind: 'annotate' }>,
  scope: Scope,
): Execute {
  const { target } = statement
  const isClassBody = scope.places === undefined && target.kind === 'name'
  const annotation = isClassBody ? compileExpression(statement.annotation, scope) : undefined
  const assign = statement.value && assignTo(target, scope)
  const value = statement.value && compileExpression(statement.value, scope)
  return frame => {
    if (annotation && target.kind === 'name') frame.annotations?.set(target.name, annotation(frame))
    if (assign && value) assign(frame, value(frame))
    return 'next'
  }
}

function compileAugmented(
  { target, operator, value }: Extract<Statement, { kind: 'augment' }>,
  scope: Scope,
): Execute {
  const right = compileExpression(value, scope)
  const combineWith = (left: Value, frame: Frame): Value => augmented(operator, left, right(frame))
  if (target.kind === 'attribute') {
    const object = compileExpression(target.object, scope)
    return frame => {
      const of = object(frame)
      setAttribute(of, target.name, combineWith(attributeOf(of, target.name), frame))
      return 'next'
    }
  }
  if (target.kind === 'subscript') {
    const [object, index] = [
      compileExpression(target.object, scope),
      compileExpression(target.index, scope),
    ]
    return frame => {
      const [of, at] = [object(frame), index(frame)]
      setItem(of, at, combineWith(itemOf(of, at), frame))
      return 'next'
    }
  }
  const [read, assign] = [compileExpression(target, scope), assignTo(target, scope)]
  return frame => {
    assign(frame, combineWith(read(frame), frame))
    return 'next'
  }
}

function augmented(operator: BinaryOperator, left: Value, right: Value): Value {
  if (operator === '+' && Array.isArray(left)) {
    const items = [...iterate(right)]
    touch(left)
    left.push(...items)
    return left
  }
  return operate(operator, left, right, `${operator}=`)
}

function compileDelete(targets: readonly Expression[], scope: Scope): Execute {
  const removals = targets.map(target => {
    if (target.kind !== 'subscript') throw new SourceError(`A ${target.kind} cannot be deleted`)
    return [
      compileExpression(target.object, scope),
      compileExpression(target.index, scope),
    ] as const
  })
  return frame => {
    for (const [object, index] of removals) deleteItem(object(frame), index(frame))
    return 'next'
  }
}

function compileRaise(value: Expression | undefined, scope: Scope): Execute {
  const error = value && compileExpression(value, scope)
  return frame => {
    const raised = error ? error(frame) : frame.handled
    if (raised instanceof ExceptionClass) throw call(raised)
    if (raised instanceof PythonError) throw raised
    throw new PythonError('TypeError', 'exceptions must derive from BaseException')
  }
}

function compileAssert(statement: Extract<Statement, { kind: 'assert' }>, scope: Scope): Execute {
  const condition = compileExpression(statement.condition, scope)
  const message = statement.message && compileExpression(statement.message, scope)
  return frame => {
    if (isTrue(condition(frame))) return 'next'
    throw new PythonError('AssertionError', message ? str(message(frame)) : '')
  }
}

function compileTry(statement: Extract<Statement, { kind: 'try' }>, scope: Scope): Execute {
  const body = compileBlock(statement.body, scope)
  const otherwise = compileBlock(statement.otherwise, scope)
  const last = compileBlock(statement.finally, scope)
  const handlers = statement.handlers.map(({ type, name, body: inner }) => ({
    type: type && compileExpression(type, scope),
    assign: name === undefined ? undefined : assignToName(name, scope),
    run: compileBlock(inner, scope),
  }))
  const attempt: Execute = frame => {
    try {
      const signal = body(frame)
      if (signal !== 'next') return signal
    } catch (error) {
      if (!(error instanceof PythonError)) throw error
      const handler = handlers.find(({ type }) => type === undefined || catches(type(frame), error))
      if (handler === undefined) throw error
      handler.assign?.(frame, error)
      frame.handled = error
      return handler.run(frame)
    }
    return otherwise(frame)
  }
  if (statement.finally.length === 0) return attempt
  return frame => {
    let signal: Signal
    try {
      signal = attempt(frame)
    } catch (error) {
      const ended = last(frame)
      if (ended === 'next') throw error
      return ended
    }
    const ended = last(frame)
    return ended === 'next' ? signal : ended
  }
}

function catches(type: Value, error: PythonError): boolean {
  if (type instanceof PythonTuple) return type.items.some(one => catches(one, error))
  return type instanceof ExceptionClass && isCaught(error, type)
}

function compileDefinition(
  statement: Extract<Statement, { kind: 'function' | 'class' }>,
  scope: Scope,
): Execute {
  const name = statement.kind === 'function' ? statement.shape.name : statement.name
  const make =
    statement.kind === 'function'
      ? compileFunction(statement, scope)
      : compileClass(statement, scope)
  const decorators = statement.decorators
    .map(decorator => compileExpression(decorator, scope))
    .reverse()
  const assign = assignToName(name, scope)
  return frame => {
    let made = make(frame)
    for (const decorator of decorators) made = call(decorator(frame), [made])
    assign(frame, made)
    return 'next'
  }
}
