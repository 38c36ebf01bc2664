import type { SampleKey } from '../../base/core/policy.ts'

/** Paths remembered at one time. */
const remembered = 200_000

/**
 * Counts samples of one key: a turn that was aborted and resumed has several. Turns of a path come
 * one after the other, so only the last one of each path is remembered.
 */
export function makeNth(): (key: SampleKey, count?: number) => number {
  const paths = new Map<string, { turn: number; next: number }>()
  return ({ task, member, branch, turn, making }, count = 1) => {
    const path = JSON.stringify([task, member, branch, making])
    const last = paths.get(path)
    const nth = last?.turn === turn ? last.next : 0
    paths.delete(path)
    paths.set(path, { turn, next: nth + count })
    for (const [oldest] of paths) {
      if (paths.size <= remembered) break
      paths.delete(oldest)
    }
    return nth
  }
}
