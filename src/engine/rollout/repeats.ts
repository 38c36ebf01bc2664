import type { Repeat } from '../../base/core/segment.ts'
import { type Place, repeatsOf, type Tree } from '../../base/core/tree.ts'

/** Shorter matches are ignored: they are template text that occurs everywhere. */
const shortest = 8

/**
 * Which earlier tokens a rewritten path carries over: the longest run that ends the old path and
 * stands somewhere in the new tokens. Found in linear time with the Z-function of the reversed
 * arrays.
 */
export function findRepeats(
  tree: Pick<Tree, 'nodes'>,
  rewritten: {
    readonly end: Place
    readonly path: Int32Array
    readonly keep: number
    readonly ids: Int32Array
  },
): readonly Repeat[] {
  const { end, path, keep, ids } = rewritten
  const tail = path.subarray(keep)
  const joined = new Int32Array(tail.length + 1 + ids.length)
  joined.set(tail.toReversed(), 0)
  joined[tail.length] = -1
  joined.set(ids.toReversed(), tail.length + 1)
  const matches = zFunction(joined)
  let best = shortest - 1
  let bestAt = -1
  for (let at = tail.length + 1; at < joined.length; at++) {
    if (matches[at]! > best) {
      best = matches[at]!
      bestAt = at
    }
  }
  if (bestAt < 0) return []
  const last = ids.length - (bestAt - tail.length - 1)
  return repeatsOf(tree, end, { from: path.length - best, to: path.length, at: last - best })
}

/** For each place, how many tokens from there on equal the array's own beginning. */
function zFunction(tokens: Int32Array): Int32Array {
  const z = new Int32Array(tokens.length)
  let left = 0
  let right = 0
  for (let at = 1; at < tokens.length; at++) {
    let length = at < right ? Math.min(right - at, z[at - left]!) : 0
    while (at + length < tokens.length && tokens[length] === tokens[at + length]) length++
    z[at] = length
    if (at + length > right) {
      left = at
      right = at + length
    }
  }
  return z
}
