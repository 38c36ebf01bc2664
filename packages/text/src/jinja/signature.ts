import {
  method as bodyMethod,
  type Method as PythonMethod,
  type MethodBody as PythonMethodBody,
  type Signature,
} from '../python/signature.ts'
import type { Run } from './run.ts'
import type { Value } from './value.ts'

/** A filter, which is called like a method of what stands before it. */
export type Method = PythonMethod<Value, Run>

/** The work of a filter. */
export type MethodBody<Self extends Value> = PythonMethodBody<Self, Value, Run>

/** A filter from its signature and its work. */
export const method = <Self extends Value>(shape: Signature, body: MethodBody<Self>): Method =>
  bodyMethod<Self, Value, Run>(shape, body)

export { bind, type Signature, signature } from '../python/signature.ts'
