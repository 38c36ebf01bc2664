import { TypeForm, type TypeFormKind } from '../type-form.ts'
import { Module, Native, PythonTuple, type Value } from '../values.ts'

const FORMS: readonly (readonly [string, TypeFormKind])[] = [
  ['Any', 'any'],
  ['List', 'list'],
  ['Dict', 'dict'],
  ['Tuple', 'tuple'],
  ['Set', 'set'],
  ['Union', 'union'],
  ['Literal', 'literal'],
  ['Annotated', 'annotated'],
  ['Callable', 'callable'],
  ['Type', 'other'],
  ['Iterable', 'other'],
]

/** Python's `typing`. */
export const typingModule = new Module(
  'typing',
  new Map<string, Value>([
    ...FORMS.map(([name, kind]) => [name, new TypeForm(kind, name)] as const),
    ['Optional', new TypeForm('union', 'Optional')],
    ['TYPE_CHECKING', false],
    ['TypeVar', new Native('TypeVar', () => new TypeForm('any', 'Any'))],
    ['get_args', new Native('get_args', ([form]) => new PythonTuple((form as TypeForm).items))],
    ['ClassVar', new TypeForm('other', 'ClassVar')],
  ]),
)
