import type { Trajectory } from '../../../base/core/trajectory.ts'
import { decodeFrame } from '../../../run/store/frame.ts'
import type { RunIndex } from './run-index.ts'
import { saysText } from './says-text.ts'

/** Groups that hold a text, as far as it has been searched. */
export interface Hits {
  readonly groups: ReadonlySet<string>
  readonly looked: number
}

interface Search {
  readonly groups: Set<string>
  looked: number
  end: number
  work: Promise<void> | undefined
}

/** Searches of one run: each goes on in the background, and only the newest few are kept. */
export class TextSearch {
  readonly #index: RunIndex
  readonly #searches = new Map<string, Search>()

  constructor(index: RunIndex) {
    this.#index = index
  }

  /** What was found so far; waits a moment for it, so that small runs answer at once. */
  async find(text: string): Promise<Hits> {
    const needle = text.toLowerCase()
    const search = this.#searches.get(needle) ?? {
      groups: new Set(),
      looked: 0,
      end: 0,
      work: undefined,
    }
    this.#searches.delete(needle)
    this.#searches.set(needle, search)
    while (this.#searches.size > 4) this.#searches.delete(this.#searches.keys().next().value!)
    search.work ??= this.#run(needle, search).finally(() => {
      search.work = undefined
    })
    await Promise.race([search.work, new Promise(resolve => setTimeout(resolve, 300))])
    return { groups: search.groups, looked: search.looked }
  }

  async #run(needle: string, search: Search): Promise<void> {
    let lastYield = performance.now()
    for await (const { id, bytes, end } of this.#index.treeFrames(search.end)) {
      if (holds(bytes, needle)) {
        const group = this.#index.groupOfTree(id)
        if (group !== undefined) search.groups.add(group)
      }
      search.looked++
      search.end = end
      if (this.#searches.get(needle) !== search) return
      if (performance.now() - lastYield < 8) continue
      await new Promise(resolve => setImmediate(resolve))
      lastYield = performance.now()
    }
  }
}

/** Whether a tree's messages hold a text. Its bytes are searched first: most frames end there. */
function holds(bytes: Buffer, needle: string): boolean {
  const escaped = JSON.stringify(needle).slice(1, -1)
  const json = bytes.toString('utf8', 12, 12 + bytes.readUInt32LE(8))
  // Long texts lie behind the arrays, where only decoding finds them.
  if (!json.includes('["t",') && !json.toLowerCase().includes(escaped)) return false
  const { header } = decodeFrame(bytes, 0)
  const { trajectories } = (header as { tree: { trajectories: readonly Trajectory[] } }).tree
  return trajectories.some(trajectory => saysText(trajectory, needle))
}
