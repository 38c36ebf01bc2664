import { BuiltinMethod } from './methods.ts'
import { nameOf } from './operators.ts'
import { repr, str } from './show.ts'
import {
  BoundMethod,
  BuiltinClass,
  type Dict,
  EnumMember,
  ExceptionClass,
  Instance,
  type Named,
  Native,
  ProgramClass,
  ProgramFunction,
  PythonError,
  PythonTuple,
  typeError,
  type Value,
  valueError,
} from './values.ts'

/** Arguments that do not fit the parameters of what is called. */
export class BindingError extends PythonError {
  readonly called: ProgramFunction
  constructor(called: ProgramFunction, message: string) {
    super('TypeError', message)
    this.called = called
  }
}

const NOBODY: Named = new Map()

/** How deep calls may nest, well before the stack of the host ends. */
const DEEPEST = 400
let depth = 0

/** Calls whatever can be called. */
export function call(called: Value, given: readonly Value[] = [], named: Named = NOBODY): Value {
  if (called instanceof BoundMethod) return callMethod(called, given, named)
  if (called instanceof ProgramFunction) return runFunction(called, given, named)
  if (called instanceof Native) return called.call(given, named)
  if (called instanceof BuiltinClass) return called.make(given, named)
  if (called instanceof ProgramClass) return construct(called, given, named)
  if (called instanceof ExceptionClass) return raiseable(called, given)
  throw typeError(`'${nameOf(called)}' object is not callable`)
}

function callMethod({ called, self }: BoundMethod, given: readonly Value[], named: Named): Value {
  if (called instanceof BuiltinMethod) return called.run(self, given, named)
  const all = [self, ...given]
  return called instanceof Native ? called.call(all, named) : runFunction(called, all, named)
}

function raiseable({ name }: ExceptionClass, given: readonly Value[]): PythonError {
  const [first = ''] = given
  const message =
    given.length > 1 ? str(new PythonTuple(given)) : name === 'KeyError' ? repr(first) : str(first)
  return new PythonError(name, message)
}

function runFunction(called: ProgramFunction, given: readonly Value[], named: Named): Value {
  const slots = bind(called, given, named)
  if (depth >= DEEPEST) throw new PythonError('RecursionError', 'maximum recursion depth exceeded')
  depth++
  try {
    return called.plan.run(slots, called)
  } finally {
    depth--
  }
}

/** The arguments in the order of the parameters, or Python's TypeError. */
function bind(
  called: ProgramFunction,
  given: readonly Value[],
  named: Named,
): (Value | undefined)[] {
  const { parameters } = called
  const slots: (Value | undefined)[] = new Array(called.plan.size)
  if (called.plan.isSimple && named.size === 0 && given.length === parameters.length) {
    for (let at = 0; at < given.length; at++) slots[at] = given[at]
    return slots
  }
  const rest: Value[] = []
  const namedRest: Dict = new Map()
  let place = 0
  for (const value of given) {
    while (parameters[place]?.kind === 'keyword-only') place = parameters.length
    const parameter = parameters[place]
    if (parameter?.kind === 'plain') slots[place++] = value
    else rest.push(value)
  }
  for (const [name, value] of named) {
    const at = parameters.findIndex(
      one => one.name === name && (one.kind === 'plain' || one.kind === 'keyword-only'),
    )
    if (at < 0) namedRest.set(name, value)
    else if (slots[at] !== undefined) {
      throw new BindingError(
        called,
        `${called.qualifiedName}() got multiple values for argument '${name}'`,
      )
    } else slots[at] = value
  }
  return fill(called, slots, { rest, namedRest, count: given.length })
}

interface Left {
  readonly rest: readonly Value[]
  readonly namedRest: Dict
  readonly count: number
}

function fill(
  called: ProgramFunction,
  slots: (Value | undefined)[],
  { rest, namedRest, count }: Left,
): (Value | undefined)[] {
  const { parameters, qualifiedName } = called
  let isRestTaken = false
  let isNamedTaken = false
  parameters.forEach((parameter, at) => {
    if (parameter.kind === 'rest') {
      slots[at] = new PythonTuple(rest)
      isRestTaken = true
    } else if (parameter.kind === 'named-rest') {
      slots[at] = namedRest
      isNamedTaken = true
    }
  })
  if (!isNamedTaken && namedRest.size > 0) {
    const [name] = namedRest.keys()
    throw new BindingError(
      called,
      `${qualifiedName}() got an unexpected keyword argument '${name as string}'`,
    )
  }
  if (!isRestTaken && rest.length > 0) throw tooMany(called, count)
  const missing = parameters.filter((parameter, at) => {
    if (slots[at] === undefined) slots[at] = parameter.default
    return slots[at] === undefined
  })
  if (missing.length > 0)
    throw missingError(
      called,
      missing.map(({ name }) => name),
    )
  return slots
}

function tooMany(called: ProgramFunction, count: number): PythonError {
  const { parameters, qualifiedName } = called
  const places = parameters.filter(({ kind }) => kind === 'plain')
  const least = places.filter(one => one.default === undefined).length
  const takes = least === places.length ? `${least}` : `from ${least} to ${places.length}`
  const noun = places.length === 1 ? 'argument' : 'arguments'
  const verb = count === 1 ? 'was' : 'were'
  return new BindingError(
    called,
    `${qualifiedName}() takes ${takes} positional ${noun} but ${count} ${verb} given`,
  )
}

/** What Python says when arguments are missing. */
function missingError(called: ProgramFunction, missing: readonly string[]): PythonError {
  const name = called.qualifiedName
  const noun = missing.length === 1 ? 'argument' : 'arguments'
  const quoted = missing.map(one => `'${one}'`)
  const listed =
    quoted.length < 3
      ? quoted.join(' and ')
      : `${quoted.slice(0, -1).join(', ')}, and ${quoted.at(-1)}`
  return new BindingError(
    called,
    `${name}() missing ${missing.length} required positional ${noun}: ${listed}`,
  )
}

/** Makes an instance: a member of an enum is looked up, a model checks its fields. */
function construct(of: ProgramClass, given: readonly Value[], named: Named): Value {
  if (of.kind === 'enum') return memberOf(of, given[0] as Value)
  const maker = of.find('__new__')
  if (maker instanceof Native) return maker.call([of, ...given], named)
  const made = new Instance(of)
  const initialize = of.find('__init__')
  if (initialize !== undefined) call(initialize, [made, ...given], named)
  return made
}

/** The member of an enum with that value, or Python's ValueError. */
function memberOf(of: ProgramClass, value: Value): EnumMember {
  for (const member of of.attributes.values()) {
    if (
      member instanceof EnumMember &&
      (member === value || member.equals(value) || member.value === value)
    ) {
      return member
    }
  }
  throw valueError(`${repr(value)} is not a valid ${of.name}`)
}
