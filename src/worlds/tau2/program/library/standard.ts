import { createHash } from 'node:crypto'
import { call } from '../call.ts'
import { ProgramIterator } from '../iterables.ts'
import { indent } from '../lines.ts'
import { pydanticModule } from '../models/pydantic.ts'
import { isEqual, isOrdered, iterate } from '../operators.ts'
import {
  BuiltinClass,
  Module,
  Native,
  Opaque,
  ProgramBytes,
  ProgramClass,
  PythonTuple,
  type Value,
} from '../values.ts'
import { copyModule } from './copy.ts'
import { datetimeModule } from './datetime.ts'
import { inspectModule } from './inspect.ts'
import { jsonModule } from './json.ts'
import { reModule } from './pattern.ts'
import { typingModule } from './typing.ts'

const module = (name: string, members: Readonly<Record<string, Value>>): Module =>
  new Module(name, new Map(Object.entries(members)))

function sha256([source]: readonly Value[]): Value {
  const digest = createHash('sha256')
    .update((source as ProgramBytes).data)
    .digest()
  return new Opaque(
    'sha256',
    new Map<string, Value>([
      ['hexdigest', new Native('hexdigest', () => digest.toString('hex'))],
      ['digest', new Native('digest', () => new ProgramBytes(digest))],
    ]),
  )
}

function* product(sources: readonly Value[]): Generator<Value> {
  const pools = sources.map(source => [...iterate(source)])
  let rows: Value[][] = [[]]
  for (const pool of pools) rows = rows.flatMap(row => pool.map(item => [...row, item]))
  for (const row of rows) yield new PythonTuple(row)
}

function partial([called, ...first]: readonly Value[], preset: ReadonlyMap<string, Value>): Value {
  return new Native('partial', (given, named) =>
    call(called as Value, [...first, ...given], new Map([...preset, ...named])),
  )
}

const two = (name: string, holds: (left: Value, right: Value) => Value): Native =>
  new Native(name, ([left, right]) => holds(left as Value, right as Value))

const operator = module('operator', {
  eq: two('eq', isEqual),
  ne: two('ne', (left, right) => !isEqual(left, right)),
  gt: two('gt', (left, right) => isOrdered('>', left, right)),
  ge: two('ge', (left, right) => isOrdered('>=', left, right)),
  lt: two('lt', (left, right) => isOrdered('<', left, right)),
  le: two('le', (left, right) => isOrdered('<=', left, right)),
})

const silent = new Native('log', () => null)

/** The base of enums. */
const enumClass = new ProgramClass({ name: 'Enum', module: 'enum', kind: 'enum' })

/** The modules of Python's library that the programs here import, as far as they use them. */
export function standardLibrary(randomHex: () => string): ReadonlyMap<string, Module> {
  const uuid4 = new Native('uuid4', () => new Opaque('UUID', new Map([['hex', randomHex()]])))
  const modules = [
    datetimeModule,
    copyModule,
    inspectModule,
    jsonModule,
    reModule,
    typingModule,
    pydanticModule,
    operator,
    module('typing_extensions', Object.fromEntries(typingModule.scope)),
    module('enum', { Enum: enumClass }),
    module('hashlib', { sha256: new Native('sha256', sha256) }),
    module('uuid', { uuid4 }),
    module('itertools', {
      product: new Native('product', given => new ProgramIterator(product(given))),
    }),
    module('functools', { partial: new Native('partial', partial) }),
    module('collections', { defaultdict: new BuiltinClass('defaultdict', () => new Map()) }),
    module('textwrap', {
      indent: new Native('indent', ([text, prefix]) => indent(text as string, prefix as string)),
    }),
    module('pathlib', { Path: new BuiltinClass('Path', ([path]) => path as Value) }),
    module('loguru', {
      logger: new Opaque(
        'Logger',
        new Map(['debug', 'info', 'warning', 'error'].map(name => [name, silent])),
      ),
    }),
  ]
  return new Map(modules.map(one => [one.name, one]))
}
