import { type Dict, Instance, ProgramClass, type Value } from './values.ts'

/** What can change while a program runs. */
export type Mutable = Value[] | Dict | Instance | ProgramClass

/** The states that changes are recorded in; programs run one at a time. */
let recorder: Versions | undefined

/** To be called before an object changes. */
export function touch(object: Mutable): void {
  recorder?.touch(object)
}

/** What is in an object: its items, pairs or fields. */
type Contents = Value[] | Map<Value, Value> | Map<string, Value>

/** A state of all objects of a program: how it differs from the state it came from. */
export class Version {
  readonly parent: Version | undefined
  /** For each object changed since: its contents in this or the parent state, whichever is not in force. */
  readonly changed = new Map<Mutable, Contents>()
  /** Whether others came from it, so that it must stay as it is. */
  isFrozen = false
  readonly depth: number
  constructor(parent?: Version) {
    this.parent = parent
    this.depth = parent ? parent.depth + 1 : 0
  }
}

/**
 * The states that the objects of a program can be in. There is one set of objects; entering a state
 * swaps their contents for those of that state. The cost is the difference between the states, so
 * opening or forking a world is free, whatever the size of its database.
 */
export class Versions {
  readonly root = new Version()
  #current = this.root
  /** Objects seen by more than one version; others are new and need no record. */
  readonly #shared = new WeakSet<Mutable>()

  /** The state in force. */
  get current(): Version {
    return this.#current
  }

  /** Runs a part of the program in a state, which it may change. */
  within<T>(version: Version, action: () => T): T {
    const before = recorder
    this.enter(version)
    recorder = this
    try {
      return action()
    } finally {
      recorder = before
    }
  }

  /** Records what an object holds before it changes. */
  touch(object: Mutable): void {
    const { changed } = this.#current
    if (this.#shared.has(object) && !changed.has(object)) changed.set(object, copyOf(object))
  }

  /** From now on, changes of everything reachable from these values are recorded. */
  share(values: Iterable<Value>): void {
    const pending = [...values]
    while (pending.length > 0) {
      const object = pending.pop() as Value
      if (!isMutable(object) || this.#shared.has(object)) continue
      this.#shared.add(object)
      pending.push(...contentsOf(object).values())
    }
  }

  /** A state that begins as a copy of `version`, which is frozen from now on. */
  branch(version: Version): Version {
    if (!version.isFrozen) {
      version.isFrozen = true
      this.enter(version)
      for (const object of version.changed.keys()) this.share(contentsOf(object).values())
    }
    return new Version(version)
  }

  /** Puts a state in force. */
  enter(target: Version): void {
    if (target === this.#current) return
    const down: Version[] = []
    let [from, to] = [this.#current, target]
    while (from !== to) {
      if (from.depth >= to.depth) {
        swap(from)
        from = from.parent as Version
      } else {
        down.push(to)
        to = to.parent as Version
      }
    }
    for (const version of down.reverse()) swap(version)
    this.#current = target
  }

  /** Every object whose contents in this state differ from the root's. */
  changedIn(version: Version): ReadonlySet<Mutable> {
    const objects = new Set<Mutable>()
    for (let one: Version | undefined = version; one; one = one.parent) {
      for (const object of one.changed.keys()) objects.add(object)
    }
    return objects
  }
}

const isMutable = (value: Value): value is Mutable =>
  Array.isArray(value) ||
  value instanceof Map ||
  value instanceof Instance ||
  value instanceof ProgramClass

function contentsOf(object: Mutable): Contents {
  if (object instanceof Instance) return object.fields
  return object instanceof ProgramClass ? object.attributes : object
}

function copyOf(object: Mutable): Contents {
  const contents = contentsOf(object)
  return Array.isArray(contents) ? [...contents] : new Map<Value, Value>(contents)
}

/** Exchanges the contents of objects with the recorded ones. */
function swap({ changed }: Version): void {
  for (const [object, recorded] of changed) {
    const before = copyOf(object)
    put(object, recorded)
    changed.set(object, before)
  }
}

function put(object: Mutable, contents: Contents): void {
  const target = contentsOf(object)
  if (Array.isArray(target)) {
    target.length = 0
    for (const item of contents as Value[]) target.push(item)
    return
  }
  target.clear()
  for (const [key, value] of contents as Map<Value, Value>) {
    ;(target as Map<Value, Value>).set(key, value)
  }
}
