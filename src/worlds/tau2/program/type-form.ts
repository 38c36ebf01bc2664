import { ProgramObject, type Value } from './values.ts'

/** A type as annotations write it: `List[str]`, `Optional[int]`, `Literal['a']`. */
export class TypeForm extends ProgramObject {
  readonly type = '_GenericAlias'
  readonly kind: TypeFormKind
  readonly items: readonly Value[]
  /** How it is printed; those of `typing` print with capitals. */
  readonly spelling: string
  constructor(kind: TypeFormKind, spelling: string, items: readonly Value[] = []) {
    super()
    this.kind = kind
    this.spelling = spelling
    this.items = items
  }
}

/** How a type was formed. */
export type TypeFormKind =
  | 'any'
  | 'list'
  | 'dict'
  | 'tuple'
  | 'set'
  | 'union'
  | 'literal'
  | 'annotated'
  | 'callable'
  | 'other'
