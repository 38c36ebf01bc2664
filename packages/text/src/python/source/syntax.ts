import type { BinaryOperator } from '../operators.ts'

/** A part of an f-string: text, or an expression with how it is to be shown. */
export type TextPart =
  | string
  | {
      readonly value: Expression
      readonly conversion?: 'r' | 's' | 'a'
      readonly format: readonly TextPart[]
    }

/** An argument of a call: by place, by name (`name=`), or spread (`*` and `**`). */
export interface Argument {
  readonly spread?: '*' | '**'
  readonly name?: string
  readonly value: Expression
}

/** One `for … in … if …` of a comprehension. */
export interface Clause {
  readonly target: Expression
  readonly source: Expression
  readonly conditions: readonly Expression[]
}

/** A parameter of a function. */
export interface Parameter {
  readonly name: string
  readonly kind: 'plain' | 'keyword-only' | 'rest' | 'named-rest'
  readonly annotation?: Expression
  readonly default?: Expression
}

/** What a `lambda` and a `def` have in common. */
export interface FunctionShape {
  readonly name: string
  readonly parameters: readonly Parameter[]
}

/** An expression of the subset of Python that the checkout is written in. */
export type Expression =
  | { readonly kind: 'constant'; readonly value: string | number | bigint | boolean | null }
  | { readonly kind: 'float'; readonly value: number }
  | { readonly kind: 'ellipsis' }
  | { readonly kind: 'text'; readonly parts: readonly TextPart[] }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'attribute'; readonly object: Expression; readonly name: string }
  | { readonly kind: 'subscript'; readonly object: Expression; readonly index: Expression }
  | {
      readonly kind: 'slice'
      readonly from?: Expression
      readonly to?: Expression
      readonly step?: Expression
    }
  | {
      readonly kind: 'call'
      readonly called: Expression
      readonly arguments: readonly Argument[]
    }
  | { readonly kind: 'list' | 'tuple' | 'set'; readonly items: readonly Expression[] }
  | { readonly kind: 'dict'; readonly pairs: readonly (readonly [Expression | null, Expression])[] }
  | { readonly kind: 'starred'; readonly value: Expression }
  | {
      readonly kind: 'unary'
      readonly operator: 'not' | '-' | '+' | '~'
      readonly value: Expression
    }
  | {
      readonly kind: 'binary'
      readonly operator: BinaryOperator
      readonly left: Expression
      readonly right: Expression
    }
  | {
      readonly kind: 'boolean'
      readonly operator: 'and' | 'or'
      readonly left: Expression
      readonly right: Expression
    }
  | {
      readonly kind: 'compare'
      readonly first: Expression
      readonly rest: readonly (readonly [string, Expression])[]
    }
  | {
      readonly kind: 'choice'
      readonly condition: Expression
      readonly yes: Expression
      readonly no: Expression
    }
  /** `name := value`. */
  | { readonly kind: 'named'; readonly name: string; readonly value: Expression }
  | { readonly kind: 'lambda'; readonly shape: FunctionShape; readonly body: Expression }
  | {
      readonly kind: 'comprehension'
      readonly makes: 'list' | 'set' | 'generator' | 'dict'
      readonly item: Expression
      /** Of a dict: the value beside the key. */
      readonly value?: Expression
      readonly clauses: readonly Clause[]
    }

/** A statement of that subset. */
export type Statement =
  | { readonly kind: 'expression'; readonly value: Expression }
  | {
      readonly kind: 'assign'
      readonly targets: readonly Expression[]
      readonly value: Expression
    }
  | {
      readonly kind: 'annotate'
      readonly target: Expression
      readonly annotation: Expression
      readonly value?: Expression
    }
  | {
      readonly kind: 'augment'
      readonly target: Expression
      readonly operator: BinaryOperator
      readonly value: Expression
    }
  | { readonly kind: 'delete'; readonly targets: readonly Expression[] }
  | { readonly kind: 'return'; readonly value?: Expression }
  | { readonly kind: 'raise'; readonly value?: Expression }
  | { readonly kind: 'assert'; readonly condition: Expression; readonly message?: Expression }
  | { readonly kind: 'pass' | 'break' | 'continue' }
  | {
      readonly kind: 'if'
      readonly condition: Expression
      readonly yes: Block
      readonly no: Block
    }
  | { readonly kind: 'while'; readonly condition: Expression; readonly body: Block }
  | {
      readonly kind: 'for'
      readonly target: Expression
      readonly source: Expression
      readonly body: Block
      readonly otherwise: Block
    }
  | {
      readonly kind: 'try'
      readonly body: Block
      readonly handlers: readonly Handler[]
      readonly otherwise: Block
      readonly finally: Block
    }
  | {
      readonly kind: 'with'
      readonly items: readonly (readonly [Expression, Expression | undefined])[]
      readonly body: Block
    }
  | {
      readonly kind: 'function'
      readonly shape: FunctionShape
      readonly returns?: Expression
      readonly decorators: readonly Expression[]
      readonly body: Block
    }
  | {
      readonly kind: 'class'
      readonly name: string
      readonly bases: readonly Argument[]
      readonly decorators: readonly Expression[]
      readonly body: Block
    }
  | {
      readonly kind: 'import'
      readonly module: string
      readonly as: string
    }
  | {
      readonly kind: 'import-from'
      readonly module: string
      readonly level: number
      readonly names: readonly (readonly [string, string])[]
    }

/** One `except` of a `try`. */
export interface Handler {
  readonly type?: Expression
  readonly name?: string
  readonly body: Block
}

/** Statements that run one after the other. */
export type Block = readonly Statement[]
