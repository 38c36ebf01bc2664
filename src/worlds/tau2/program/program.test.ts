import { PythonFloat } from '@espalier/text/python'
import { describe, expect, it } from 'vitest'
import { call } from './call.ts'
import { loadProgram } from './program.ts'
import { repr } from './show.ts'
import type { Module, Value } from './values.ts'
import { Versions } from './versions.ts'

function load(source: string): Module {
  const program = loadProgram({
    source: name => (name === 'main' ? source : undefined),
    randomHex: () => '0'.repeat(32),
  })
  return program.load('main')
}

/** What an expression comes to after some statements, as Python prints it. */
function shown(expression: string, before = ''): string {
  return repr(load(`${before}\nanswer = ${expression}\n`).scope.get('answer') as Value)
}

const raised = (source: string): unknown => {
  try {
    load(source)
  } catch (error) {
    return String(error)
  }
  return undefined
}

describe('a program', () => {
  it('computes as Python does', () => {
    expect(shown('[7 // -2, -7 % 3, 2 ** -1, 0.1 + 0.2, round(2.675, 2), 10**20]')).toBe(
      '[-4, 2, 0.5, 0.30000000000000004, 2.67, 100000000000000000000]',
    )
    // since 3.12 floats are summed with a compensation
    expect(shown('sum([0.1] * 10)')).toBe('1.0')
    expect(shown("'{:,.2f}|{:>6}|{:03d}'.format(1234567.891, 'ab', 7)")).toBe(
      "'1,234,567.89|    ab|007'",
    )
    expect(shown("f'{x!r:}{x:.1f}{{}}{[i for i in range(3) if i]}'", 'x = 2.25')).toBe(
      "'2.252.2{}[1, 2]'",
    )
  })

  it('assigns within expressions, in the function around them', () => {
    const source = `
def find(words):
    if _ := [word for word in words if (last := word) > "b"]:
        return [_, last]
    return (n := len(words)) + n
`
    expect(shown('[find(["a", "c"]), find(["a"])]', source)).toBe("[[['c'], 'c'], 2]")
  })

  it('keeps the rules of scopes, closures and classes', () => {
    const source = `
class Shape(object):
    sides = 0
    def __init__(self, name="shape"):
        self.name = name
    @property
    def title(self):
        return f"{self.name.title()} with {self.sides}"

class Square(Shape):
    sides = 4
    def __init__(self):
        super().__init__("big square")

def outer():
    count = [1, 2, 3]
    add = lambda number, more=10: number + more
    return [add(one) for one in count if one != 2], {k: v for k, v in zip("ab", count)}

try:
    Square().missing
except AttributeError as error:
    said = str(error)
else:
    said = ""
`
    expect(shown('(Square().title, outer(), said)', source)).toBe(
      "('Big Square with 4', ([11, 13], {'a': 1, 'b': 2}), \"'Square' object has no attribute 'missing'\")",
    )
  })

  it('raises with the words of Python', () => {
    const head = 'def give(order_id, amount=1):\n    return order_id\n'
    expect(raised(`${head}give()`)).toBe(
      "TypeError: give() missing 1 required positional argument: 'order_id'",
    )
    expect(raised(`${head}give(1, order_id=2)`)).toBe(
      "TypeError: give() got multiple values for argument 'order_id'",
    )
    expect(raised(`${head}give(**{"order_id": 1, "b": 2})`)).toBe(
      "TypeError: give() got an unexpected keyword argument 'b'",
    )
    expect(raised('1 + "a"')).toBe("TypeError: unsupported operand type(s) for +: 'int' and 'str'")
    expect(raised('{}["a"]')).toBe("KeyError: 'a'")
    expect(raised('[1] in {1}')).toBe("TypeError: unhashable type: 'list'")
    expect(raised('float("1,5")')).toBe("ValueError: could not convert string to float: '1,5'")
    expect(raised('float("1" * 200000 + "x")')).toContain('could not convert string to float')
    expect(raised('import os')).toBe("ModuleNotFoundError: No module named 'os'")
    expect(raised('def again(): return again()\nagain()')).toContain('RecursionError')
  })

  it('checks models as pydantic does', () => {
    const models = `
from enum import Enum
from typing import Dict, List, Literal, Optional
from pydantic import BaseModel, Field
class Kind(str, Enum):
    OLD = "old"
    NEW = "new"
class Item(BaseModel):
    price: float
    kind: Kind = Kind.OLD
    size: Optional[int] = None
class Box(BaseModel):
    items: List[Item] = Field(default_factory=list)
    by_name: Dict[str, Item] = {}
`
    expect(shown('Box(items=[{"price": "3", "size": 2.0, "more": 1}]).model_dump()', models)).toBe(
      "{'items': [{'price': 3.0, 'kind': <Kind.OLD: 'old'>, 'size': 2}], 'by_name': {}}",
    )
    expect(raised(`${models}\nBox(items=[{"kind": "odd", "size": 1.5}])`)).toBe(
      [
        'ValidationError: 3 validation errors for Box',
        'items.0.price',
        "  Field required [type=missing, input_value={'kind': 'odd', 'size': 1.5}, input_type=dict]",
        '    For further information visit https://errors.pydantic.dev/2.12/v/missing',
        'items.0.kind',
        "  Input should be 'old' or 'new' [type=enum, input_value='odd', input_type=str]",
        '    For further information visit https://errors.pydantic.dev/2.12/v/enum',
        'items.0.size',
        '  Input should be a valid integer, got a number with a fractional part [type=int_from_float, input_value=1.5, input_type=float]',
        '    For further information visit https://errors.pydantic.dev/2.12/v/int_from_float',
      ].join('\n'),
    )
  })

  it('can be in many states at once, each of which knows only its own changes', () => {
    const { scope } = load(
      'state = {"list": [1], "dict": {}}\ndef add(n):\n    state["list"].append(n)\n    state["dict"][n] = [n]\ndef grow(n):\n    state["dict"][n].append(0)\n',
    )
    const [state, add, grow] = ['state', 'add', 'grow'].map(name => scope.get(name) as Value)
    const versions = new Versions()
    versions.share([state as Value])
    const first = versions.branch(versions.root)
    const second = versions.branch(versions.root)
    versions.within(first, () => call(add as Value, [2]))
    versions.within(second, () => call(add as Value, [new PythonFloat(5)]))
    const [left, right] = [versions.branch(first), versions.branch(first)]
    versions.within(left, () => call(grow as Value, [2]))
    const seen = [versions.root, first, second, left, right].map(version =>
      versions.within(version, () => repr(state as Value)),
    )
    expect(seen).toEqual([
      "{'list': [1], 'dict': {}}",
      "{'list': [1, 2], 'dict': {2: [2]}}",
      "{'list': [1, 5.0], 'dict': {5.0: [5.0]}}",
      "{'list': [1, 2], 'dict': {2: [2, 0]}}",
      "{'list': [1, 2], 'dict': {2: [2]}}",
    ])
  })
})
