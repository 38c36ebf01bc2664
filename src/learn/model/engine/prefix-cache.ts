import { BLOCK } from '../kernels/layout.ts'

/**
 * A block of keys and values in the tree of all known prefixes: the tokens of one stretch of
 * `BLOCK` positions, below the block of the stretch before.
 */
export interface CacheNode {
  readonly block: number
  readonly parent: CacheNode | undefined
  readonly tokens: Int32Array
  /** Tokens that are chosen, whether or not they are computed. */
  known: number
  /** Tokens whose keys and values are computed; only these may be used by others. */
  filled: number
  /** Sequences and sessions that use this block. */
  references: number
  /** What follows, by its first token. */
  readonly children: Map<number, CacheNode[]>
}

/** The longest usable beginning of a prompt. */
export interface Match {
  /** Whole blocks, to be used as they are. */
  readonly path: readonly CacheNode[]
  /** A block whose first tokens agree, to be copied: it differs, or is still growing. */
  readonly partial?: { readonly node: CacheNode; readonly tokens: number }
  /** Tokens of the beginning in all. */
  readonly tokens: number
  /** Whether another sequence is computing more of this prompt right now: waiting a step is cheaper. */
  readonly pending: boolean
}

/** From how many tokens on waiting for another sequence's computation pays. */
const worthWaiting = 4

/**
 * Blocks of keys and values by their tokens, so that a common beginning of prompts is computed once.
 * Unused blocks stay until their space is needed; the oldest go first.
 */
export class PrefixCache {
  readonly #roots = new Map<number, CacheNode[]>()
  readonly #free: number[]
  /** Unused blocks without children, the longest unused first. */
  readonly #idle = new Set<CacheNode>()
  #unreferenced = 0

  constructor(blocks: number) {
    this.#free = Array.from({ length: blocks }, (_, index) => blocks - 1 - index)
  }

  /** Blocks that are free or can be freed because nobody uses them. */
  get available(): number {
    return this.#free.length + this.#unreferenced
  }

  /** Finds the longest known beginning of `tokens`, at most `limit` of them. */
  match(tokens: Int32Array, limit: number): Match {
    const path: CacheNode[] = []
    let children = this.#roots
    while (true) {
      const start = path.length * BLOCK
      const wanted = tokens.subarray(start, Math.min(start + BLOCK, limit))
      const { node, usable, promised } = bestChild(children, wanted)
      if (node && usable === BLOCK) {
        path.push(node)
        children = node.children
        continue
      }
      const pending = promised >= usable + worthWaiting
      const partial = node && usable > 0 ? { partial: { node, tokens: usable } } : {}
      return { path, ...partial, tokens: start + usable, pending }
    }
  }

  /** Marks these blocks as used: they stay until released as often. */
  acquire(path: readonly CacheNode[]): void {
    for (const node of path) {
      if (node.references++ > 0) continue
      this.#unreferenced--
      this.#idle.delete(node)
    }
  }

  /** Releases these blocks, given from the root on. */
  release(path: readonly CacheNode[]): void {
    for (const node of [...path].reverse()) {
      node.references--
      if (node.references > 0) continue
      this.#unreferenced++
      if (node.children.size > 0) continue
      this.#idle.add(node)
      if (node.filled === 0) this.#forget(node)
    }
  }

  /** A new block below `parent`, beginning with `first`, which the caller uses. */
  add(parent: CacheNode | undefined, first: number): CacheNode {
    const block = this.#takeBlock()
    const node: CacheNode = {
      block,
      parent,
      tokens: new Int32Array(BLOCK),
      known: 1,
      filled: 0,
      references: 1,
      children: new Map(),
    }
    node.tokens[0] = first
    const siblings = parent ? parent.children : this.#roots
    const twins = siblings.get(first)
    if (twins) twins.push(node)
    else siblings.set(first, [node])
    return node
  }

  /** Forgets everything; no block may be in use. */
  clear(): void {
    while (this.#unreferenced > 0) this.#forgetOldest()
  }

  #takeBlock(): number {
    if (this.#free.length === 0) this.#forgetOldest()
    return this.#free.pop()!
  }

  #forgetOldest(): void {
    const [oldest] = this.#idle
    if (!oldest) throw new Error('The key-value cache is full: every block is in use.')
    this.#forget(oldest)
  }

  #forget(node: CacheNode): void {
    this.#idle.delete(node)
    this.#unreferenced--
    this.#free.push(node.block)
    const { parent } = node
    const siblings = parent ? parent.children : this.#roots
    const twins = siblings.get(node.tokens[0]!)!
    if (twins.length > 1) twins.splice(twins.indexOf(node), 1)
    else siblings.delete(node.tokens[0]!)
    if (parent && parent.references === 0 && parent.children.size === 0) this.#idle.add(parent)
  }
}

/** The child that agrees with `wanted` longest, and how much more another one is about to compute. */
function bestChild(
  children: ReadonlyMap<number, readonly CacheNode[]>,
  wanted: Int32Array,
): { node: CacheNode | undefined; usable: number; promised: number } {
  let node: CacheNode | undefined
  let usable = 0
  let promised = 0
  for (const child of children.get(wanted[0]!) ?? []) {
    const agreed = commonLength(child, wanted)
    promised = Math.max(promised, agreed)
    const ready = Math.min(agreed, child.filled)
    if (ready <= usable) continue
    node = child
    usable = ready
    if (usable === BLOCK) break
  }
  return { node, usable, promised }
}

function commonLength(node: CacheNode, wanted: Int32Array): number {
  const end = Math.min(node.known, wanted.length)
  let at = 0
  while (at < end && node.tokens[at] === wanted[at]) at++
  return at
}
