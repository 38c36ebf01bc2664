import { METHODS, type Method, methodsOf, UnsupportedError } from '@espalier/text/python'
import { RUNTIME } from './runtime.ts'
import { type Named, Native, ProgramBytes, unwrap, type Value } from './values.ts'

/** A method of one of Python's own classes. */
export class BuiltinMethod extends Native {
  readonly method: Method
  constructor(name: string, method: Method) {
    super(name, ([self, ...given], named) => this.run(unwrap(self as Value), given, named))
    this.method = method
  }

  /** Runs it on an object. */
  run(self: Value, given: readonly Value[], named: Named): Value {
    const input = { positional: given, named: named.size === 0 ? undefined : named }
    return this.method.call(RUNTIME, self, input) as Value
  }
}

const UTF8 = /^utf[-_]?8$/i

/** The one method that gives bytes, which only programs have. */
const encode: Method = {
  changes: false,
  call: (_, self, { positional, named }) => {
    const encoding = positional[0] ?? named?.get('encoding') ?? 'utf-8'
    if (typeof encoding !== 'string' || !UTF8.test(encoding))
      throw new UnsupportedError(`Encoding a text as ${String(encoding)}`)
    return new ProgramBytes(Buffer.from(self as string, 'utf8'))
  },
}

const natives = new Map<Method, BuiltinMethod>()

function nativeOf(name: string, method: Method | undefined): BuiltinMethod | undefined {
  if (method === undefined) return undefined
  let native = natives.get(method)
  if (native === undefined) {
    native = new BuiltinMethod(name, method)
    natives.set(method, native)
  }
  return native
}

/** The method of that name that a value of Python's own has. */
export const methodNamed = (value: Value, name: string): BuiltinMethod | undefined =>
  typeof value === 'string' && name === 'encode'
    ? nativeOf(name, encode)
    : nativeOf(name, methodsOf(value)?.get(name))

/** The method of that name that a class of Python's own has. */
export const methodOfClass = (type: string, name: string): Native | undefined =>
  type === 'str' && name === 'maketrans'
    ? new Native(name, (given, named) => methodNamed('', name)?.run('', given, named) ?? null)
    : nativeOf(name, METHODS.get(type)?.get(name))
