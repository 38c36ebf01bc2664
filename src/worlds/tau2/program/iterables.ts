import { PythonTuple, type RangeParts } from '@espalier/text/python'
import { type Dict, ProgramObject, type Value } from './values.ts'

/** Values one at a time, as a generator gives them. */
export class ProgramIterator extends ProgramObject {
  readonly type = 'generator'
  readonly iterator: Iterator<Value>
  constructor(iterator: Iterator<Value>) {
    super()
    this.iterator = iterator
  }
}

/** A `range`: ints that are made as they are asked for. */
export class ProgramRange extends ProgramObject {
  readonly type = 'range'
  readonly start: number
  readonly stop: number
  readonly step: number
  readonly length: number
  constructor({ start, stop, step, length }: RangeParts) {
    super()
    this.start = start
    this.stop = stop
    this.step = step
    this.length = length
  }
  at(index: number): number {
    return this.start + index * this.step
  }
  equals(other: unknown): boolean {
    if (!(other instanceof ProgramRange) || other.length !== this.length) return false
    return this.length === 0 || (other.start === this.start && other.at(1) === this.at(1))
  }
  *[Symbol.iterator](): Generator<Value> {
    for (let index = 0; index < this.length; index++) yield this.at(index)
  }
}

/** What `keys()`, `values()` and `items()` of a dict give. */
export class DictView extends ProgramObject {
  readonly dict: Dict
  readonly part: 'keys' | 'values' | 'items'
  constructor(dict: Dict, part: 'keys' | 'values' | 'items') {
    super()
    this.dict = dict
    this.part = part
  }
  get type(): string {
    return `dict_${this.part}`
  }
  *[Symbol.iterator](): Generator<Value> {
    for (const [key, value] of this.dict) {
      yield this.part === 'keys'
        ? key
        : this.part === 'values'
          ? value
          : new PythonTuple([key, value])
    }
  }
}
