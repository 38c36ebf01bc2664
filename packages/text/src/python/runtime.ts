import type { Text, Value } from './value.ts'

/** Python as somebody runs it: what is left to be done, and whose objects take part. */
export interface Runtime {
  /** Units of work left before the language is asked for more. */
  steps: number
  /** Most characters of any one text. */
  readonly limits: { readonly characters: number }
  readonly language: Language
}

/** What a language built on Python's values does in its own way: templates, or programs. */
export interface Language {
  /** Called if the steps are used up: gives more of them, or raises. */
  renew(run: Runtime): void
  /** Raises for a text that is longer than the limit. */
  tooLong(run: Runtime, length: number): never
  /** Raises if no operator may use the value. */
  refuse(value: Value): void
  /** Python's iteration; of what cannot be walked over, its TypeError. */
  iterate(run: Runtime, value: Value): Iterable<Value>
  /** Python's `str`. */
  str(run: Runtime, value: Value): Text
  /** Python's `repr`. */
  repr(run: Runtime, value: Value): Text
  /** Python's `==`. */
  isEqual(run: Runtime, left: Value, right: Value): boolean
  /** Python's `<`. */
  isLess(run: Runtime, left: Value, right: Value): boolean
  /** The text of an object with a format of its own, such as a date. */
  format(run: Runtime, value: Value, specification: string): Text | undefined
  /** The value of `object.name` in a format. */
  attribute(value: Value, name: string): Value
  /** The value of `object[key]` in a format. */
  item(value: Value, key: string | number): Value
  /** The key under which a dict holds a value equal to this one; raises for what cannot be hashed. */
  find(dict: Map<Value, Value>, key: Value): Value | undefined
  /** What `keys()`, `values()` and `items()` of a dict give. */
  view(dict: Map<Value, Value>, part: 'keys' | 'values' | 'items'): Value
  /** A copy of a dict. */
  copy(dict: Map<Value, Value>): Value
  /** Called before a list or a dict changes. */
  touch(object: Value): void
  /** Calls a function with one argument. */
  call(called: Value, argument: Value): Value
}

/** Counts work. */
export function spend(run: Runtime, steps: number): void {
  run.steps -= steps
  if (run.steps < 0) run.language.renew(run)
}

/** Counts the making of a text, and refuses one that is too long. */
export function spendText(run: Runtime, length: number): void {
  if (length > run.limits.characters) run.language.tooLong(run, length)
  spend(run, (length >> 3) + 1)
}
