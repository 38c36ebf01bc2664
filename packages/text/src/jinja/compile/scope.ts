/** The variables of one function: the template itself, a macro, a block, a recursive loop. */
export interface FunctionScope {
  readonly parent: FunctionScope | undefined
  /** How many slots its frames need. */
  size: number
  /** Names looked up once, when the function begins. */
  readonly lookups: { readonly slot: number; readonly name: string }[]
}

/** Where a variable lives. */
export interface Reference {
  readonly slot: number
  readonly owner: FunctionScope
}

/** What a variable holds when its scope begins. */
export type Load =
  | { readonly kind: 'parameter' }
  | { readonly kind: 'lookup'; readonly name: string }
  | { readonly kind: 'alias'; readonly from: Reference }
  | { readonly kind: 'missing' }

/** The names of one scope, as Jinja's compiler tracks them. */
export interface Symbols {
  readonly parent: Symbols | undefined
  readonly owner: FunctionScope
  /** One slot per name of the scope, shared by the branches of an `if`. */
  readonly slots: Map<string, Reference>
  readonly references: Map<string, Reference>
  readonly loads: Map<Reference, Load>
  readonly stores: Set<string>
}

/** A new function, whose frames see those of `parent`. */
export const newFunction = (parent: FunctionScope | undefined): FunctionScope => ({
  parent,
  size: 0,
  lookups: [],
})

/** A new scope within a function. */
export const newSymbols = (owner: FunctionScope, parent: Symbols | undefined): Symbols => ({
  parent,
  owner,
  slots: new Map(),
  references: new Map(),
  loads: new Map(),
  stores: new Set(),
})

/** A copy for one branch of an `if`. */
export const copySymbols = (symbols: Symbols): Symbols => ({
  ...symbols,
  references: new Map(symbols.references),
  loads: new Map(symbols.loads),
  stores: new Set(symbols.stores),
})

function define(symbols: Symbols, name: string, load: Load): Reference {
  let reference = symbols.slots.get(name)
  if (!reference) {
    reference = { slot: symbols.owner.size++, owner: symbols.owner }
    symbols.slots.set(name, reference)
  }
  symbols.references.set(name, reference)
  symbols.loads.set(reference, load)
  return reference
}

/** The variable a name means in a scope or around it. */
export function findReference(symbols: Symbols | undefined, name: string): Reference | undefined {
  for (let scope = symbols; scope; scope = scope.parent) {
    const reference = scope.references.get(name)
    if (reference) return reference
  }
  return undefined
}

/** Notes that a scope sets a name. */
export function store(symbols: Symbols, name: string): void {
  symbols.stores.add(name)
  if (symbols.references.has(name)) return
  const outer = findReference(symbols.parent, name)
  define(symbols, name, outer ? { kind: 'alias', from: outer } : { kind: 'missing' })
}

/** Notes that a name is given to a scope: a loop's target, a macro's argument. */
export function declare(symbols: Symbols, name: string): Reference {
  symbols.stores.add(name)
  return define(symbols, name, { kind: 'parameter' })
}

/** Notes that a scope reads a name. */
export function load(symbols: Symbols, name: string): void {
  if (!findReference(symbols, name)) define(symbols, name, { kind: 'lookup', name })
}

/** Joins the branches of an `if`: a name set in only some of them keeps its outer value elsewhere. */
export function joinBranches(symbols: Symbols, branches: readonly Symbols[]): void {
  const stores = new Set(branches.flatMap(branch => [...branch.stores]))
  for (const name of symbols.stores) stores.delete(name)
  for (const branch of branches) {
    for (const [name, reference] of branch.references) symbols.references.set(name, reference)
    for (const [reference, value] of branch.loads) symbols.loads.set(reference, value)
    for (const name of branch.stores) symbols.stores.add(name)
  }
  for (const name of stores) {
    const target = findReference(symbols, name)
    if (!target) continue
    const outer = findReference(symbols.parent, name)
    symbols.loads.set(target, outer ? { kind: 'alias', from: outer } : { kind: 'lookup', name })
  }
}
