import type { PythonFloat } from '../../python/value.ts'

/** What a call passes: positional, named, and unpacked values. */
export interface CallArguments {
  readonly positional: readonly Expression[]
  readonly named: readonly { readonly name: string; readonly value: Expression }[]
  readonly unpacked: Expression | undefined
  readonly unpackedNamed: Expression | undefined
}

/** An arithmetic operator of Python. */
export type ArithmeticOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**'

/** A comparison of a chain. */
export type ComparisonOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in'

/** One comparison of a chain and its right-hand side. */
export interface Comparison {
  readonly operator: ComparisonOperator
  readonly value: Expression
}

/** An expression of a template; `at` is its offset in the source. */
export type Expression = { readonly at: number } & (
  | {
      readonly kind: 'constant'
      readonly value: null | boolean | number | bigint | PythonFloat | string
    }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'tuple' | 'list'; readonly items: readonly Expression[] }
  | { readonly kind: 'dict'; readonly pairs: readonly (readonly [Expression, Expression])[] }
  | { readonly kind: 'attribute'; readonly object: Expression; readonly name: string }
  | { readonly kind: 'item'; readonly object: Expression; readonly key: Expression }
  | {
      readonly kind: 'slice'
      readonly object: Expression
      readonly bounds: readonly (Expression | undefined)[]
    }
  | { readonly kind: 'call'; readonly callee: Expression; readonly input: CallArguments }
  | FilterExpression
  | {
      readonly kind: 'test'
      readonly value: Expression
      readonly name: string
      readonly input: CallArguments
    }
  | { readonly kind: 'unary'; readonly operator: '+' | '-' | 'not'; readonly value: Expression }
  | {
      readonly kind: 'arithmetic'
      readonly operator: ArithmeticOperator
      readonly left: Expression
      readonly right: Expression
    }
  | { readonly kind: 'and' | 'or'; readonly left: Expression; readonly right: Expression }
  | {
      readonly kind: 'comparison'
      readonly left: Expression
      readonly chain: readonly Comparison[]
    }
  | { readonly kind: 'concatenation'; readonly parts: readonly Expression[] }
  | {
      readonly kind: 'conditional'
      readonly test: Expression
      readonly then: Expression
      readonly otherwise: Expression | undefined
    }
)

/** A filter applied to a value, or to the body of the block it stands in (`value` undefined). */
export interface FilterExpression {
  readonly kind: 'filter'
  readonly value: Expression | undefined
  readonly name: string
  readonly input: CallArguments
}

/** What an assignment writes to. */
export type Target = { readonly at: number } & (
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'namespace'; readonly name: string; readonly attribute: string }
  | { readonly kind: 'tuple'; readonly items: readonly Target[] }
)

/** A macro's parameter. */
export interface Parameter {
  readonly name: string
  readonly default: Expression | undefined
}

/** The body of a macro or of a call block. */
export interface MacroBody {
  readonly parameters: readonly Parameter[]
  readonly body: readonly Statement[]
}

/** One branch of an `if`. */
export interface Branch {
  readonly test: Expression
  readonly body: readonly Statement[]
}

/** A `for` loop. */
export interface ForStatement {
  readonly kind: 'for'
  readonly target: Target
  readonly iterable: Expression
  readonly test: Expression | undefined
  readonly recursive: boolean
  readonly body: readonly Statement[]
  readonly otherwise: readonly Statement[]
}

/** A statement of a template; `at` is its offset in the source. */
export type Statement = { readonly at: number } & (
  | { readonly kind: 'data'; readonly text: string }
  | { readonly kind: 'print'; readonly value: Expression }
  | ForStatement
  | {
      readonly kind: 'if'
      readonly branches: readonly Branch[]
      readonly otherwise: readonly Statement[]
    }
  | { readonly kind: 'set'; readonly target: Target; readonly value: Expression }
  | {
      readonly kind: 'set-block'
      readonly target: Target
      readonly filter: Expression | undefined
      readonly body: readonly Statement[]
    }
  | ({ readonly kind: 'macro'; readonly name: string } & MacroBody)
  | ({ readonly kind: 'call-block'; readonly call: Expression } & MacroBody)
  | { readonly kind: 'generation'; readonly body: readonly Statement[] }
  | {
      readonly kind: 'filter-block'
      readonly filter: Expression
      readonly body: readonly Statement[]
    }
  | {
      readonly kind: 'with'
      readonly targets: readonly Target[]
      readonly values: readonly Expression[]
      readonly body: readonly Statement[]
    }
  | { readonly kind: 'scope'; readonly body: readonly Statement[] }
  | { readonly kind: 'block'; readonly name: string; readonly body: readonly Statement[] }
  | { readonly kind: 'break' | 'continue' }
  | { readonly kind: 'load'; readonly tag: string; readonly stores: readonly string[] }
)
