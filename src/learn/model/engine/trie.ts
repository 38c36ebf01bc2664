import type { RowOrder } from '../protocol.ts'

/** Tokens of rows laid out so that ancestors come before what follows them. */
export interface Trie {
  readonly ids: Int32Array
  /** The token before each one; −1 at the beginning of a row. */
  readonly parents: Int32Array
  readonly positions: Int32Array
  /** Whether a stretch ends with this token: more than one token follows it, or none. */
  readonly ends: Uint8Array
  /** Per row: the token that each of its places became, as far as the row is computed. */
  readonly places: readonly Int32Array[]
  /** Tokens of the rows before common beginnings were joined. */
  readonly before: number
}

/** Lays rows out as a trie: each common beginning once if `joins`, otherwise row after row. */
export function buildTrie(rows: readonly RowOrder[], joins: boolean): Trie {
  // Only tokens up to the last wanted one are computed.
  const counts = rows.map(({ mask }) => Math.max(mask.lastIndexOf(1), 0))
  const before = counts.reduce((sum, count) => sum + count, 0)
  const nodes = makeNodes(before)
  const paths = rows.map(({ ids }, row) => {
    let node = -1
    let isNew = !joins
    return Int32Array.from({ length: counts[row]! }, (_, place) => {
      const known = isNew ? -1 : nodes.find(node, ids[place]!)
      isNew ||= known < 0
      node = known < 0 ? nodes.add(node, ids[place]!) : known
      return node
    })
  })
  return arrange(nodes, paths, before)
}

type Nodes = ReturnType<typeof makeNodes>

/** Tokens as they come, with lists of what follows each. */
function makeNodes(limit: number) {
  const ids = new Int32Array(limit)
  const parents = new Int32Array(limit)
  const firsts = new Int32Array(limit + 1).fill(-1)
  const lasts = new Int32Array(limit + 1).fill(-1)
  const nexts = new Int32Array(limit).fill(-1)
  let count = 0
  return {
    ids,
    parents,
    /** What follows a token first, and what comes beside a token next; −1 if nothing does. */
    first: (node: number) => firsts[node + 1]!,
    next: (node: number) => nexts[node]!,
    size: () => count,
    find(parent: number, id: number): number {
      let child = firsts[parent + 1]!
      while (child >= 0 && ids[child] !== id) child = nexts[child]!
      return child
    },
    add(parent: number, id: number): number {
      const node = count++
      ids[node] = id
      parents[node] = parent
      if (firsts[parent + 1]! < 0) firsts[parent + 1] = node
      else nexts[lasts[parent + 1]!] = node
      lasts[parent + 1] = node
      return node
    },
  }
}

/** Puts every token before all that follows it, and branch after branch. */
function arrange(nodes: Nodes, paths: readonly Int32Array[], before: number): Trie {
  const size = nodes.size()
  const ids = new Int32Array(size)
  const parents = new Int32Array(size)
  const positions = new Int32Array(size)
  const ends = new Uint8Array(size)
  const order = new Int32Array(size)
  let node = nodes.first(-1)
  for (let at = 0; at < size; at++) {
    const parent = nodes.parents[node]!
    order[node] = at
    ids[at] = nodes.ids[node]!
    parents[at] = parent < 0 ? -1 : order[parent]!
    positions[at] = parent < 0 ? 0 : positions[order[parent]!]! + 1
    const child = nodes.first(node)
    ends[at] = child < 0 || nodes.next(child) >= 0 ? 1 : 0
    // Down, or else beside, or else beside an ancestor.
    let next = child
    for (let up = node; next < 0 && up >= 0; up = nodes.parents[up]!) next = nodes.next(up)
    node = next
  }
  return {
    ids,
    parents,
    positions,
    ends,
    before,
    places: paths.map(path => path.map(each => order[each]!)),
  }
}
