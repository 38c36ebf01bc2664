import { PythonTuple } from '../python/value.ts'
import { callValue } from './frame.ts'
import { isEqual } from './operations.ts'
import type { Run } from './run.ts'
import type { Behaviour, Input, Value } from './value.ts'
import { TemplateObject, typeError, Undefined } from './value.ts'

/** A walk over the items of a `for` loop that can look one item ahead. */
export class Loop {
  index0 = -1
  readonly depth0: number
  readonly object: TemplateObject
  readonly recurse: Value | undefined
  #items: readonly Value[] | undefined
  #iterator: Iterator<Value> | undefined
  #length: number | undefined
  #after: Value | undefined
  #before: Value | undefined
  #current: Value | undefined
  #changed: Value | undefined

  constructor(source: readonly Value[] | Iterator<Value>, depth0: number, recurse?: Value) {
    if (Array.isArray(source)) this.#items = source
    else this.#iterator = source as Iterator<Value>
    this.depth0 = depth0
    this.recurse = recurse
    this.object = new TemplateObject('LoopContext', LOOP, this)
  }

  /** The next item, or `undefined` at the end. */
  next(): Value | undefined {
    const item = this.#peek()
    if (item === undefined) return undefined
    this.#after = undefined
    this.index0++
    this.#before = this.#current
    this.#current = item
    return item
  }

  get length(): number {
    if (this.#items) return this.#items.length
    if (this.#length === undefined) {
      const rest: Value[] = this.#after === undefined ? [] : [this.#after]
      const iterator = this.#iterator as Iterator<Value>
      for (let step = iterator.next(); !step.done; step = iterator.next()) rest.push(step.value)
      this.#length = this.index0 + 1 + rest.length
      this.#after = undefined
      this.#iterator = rest.values()
    }
    return this.#length
  }

  #peek(): Value | undefined {
    if (this.#items) return this.#items[this.index0 + 1]
    if (this.#after === undefined) {
      const step = (this.#iterator as Iterator<Value>).next()
      if (!step.done) this.#after = step.value
    }
    return this.#after
  }

  /** What a template reads of the loop. */
  attribute(name: string): Value | undefined {
    switch (name) {
      case 'index':
        return this.index0 + 1
      case 'index0':
        return this.index0
      case 'first':
        return this.index0 === 0
      case 'last':
        return this.#peek() === undefined
      case 'length':
        return this.length
      case 'revindex':
        return this.length - this.index0
      case 'revindex0':
        return this.length - this.index0 - 1
      case 'depth':
        return this.depth0 + 1
      case 'depth0':
        return this.depth0
      default:
        return this.#neighbour(name)
    }
  }

  #neighbour(name: string): Value | undefined {
    switch (name) {
      case 'previtem':
        return orUndefined(this.#before, 'there is no previous item')
      case 'nextitem':
        return orUndefined(this.#peek(), 'there is no next item')
      case 'cycle':
        return new TemplateObject('method', { call: (_, input) => this.#cycle(input) })
      case 'changed':
        return new TemplateObject('method', {
          call: (run, input) => this.#hasChanged(run, input),
        })
      default:
        return undefined
    }
  }

  #cycle({ positional }: Input): Value {
    if (positional.length === 0) typeError('no items for cycling given')
    return positional[this.index0 % positional.length] as Value
  }

  #hasChanged(run: Run, { positional }: Input): boolean {
    const value = new PythonTuple(positional)
    if (this.#changed !== undefined && isEqual(run, this.#changed, value)) return false
    this.#changed = value
    return true
  }
}

const LOOP: Behaviour = {
  attribute: (name, state) => (state as Loop).attribute(name),
  length: state => (state as Loop).length,
  call: (run, input, state) => {
    const { recurse, depth0 } = state as Loop
    if (recurse === undefined) {
      typeError("The loop must have the 'recursive' marker to be called recursively.")
    }
    return callValue(run, recurse, withDepth(input, depth0 + 1))
  },
  show: state => {
    const { index0, length } = state as Loop
    return `<LoopContext ${index0 + 1}/${length}>`
  },
}

const orUndefined = (value: Value | undefined, message: string): Value =>
  value === undefined ? new Undefined(() => message) : value

const withDepth = (input: Input, depth: number): Input => ({
  positional: [...input.positional.slice(0, 1), depth],
  named: input.named,
})

/** The items that a test lets through, tested only as they are asked for. */
export function* filtered(
  source: readonly Value[] | Iterator<Value>,
  test: (item: Value) => boolean,
): Generator<Value> {
  const iterator = Array.isArray(source) ? source.values() : (source as Iterator<Value>)
  for (let step = iterator.next(); !step.done; step = iterator.next()) {
    if (test(step.value)) yield step.value
  }
}
