import { trajectoryId } from '../../base/core/ids.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import type { SampledSegment } from '../../base/core/segment.ts'
import type { Turn } from '../../base/core/trajectory.ts'
import type { Place, Tree } from '../../base/core/tree.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { act } from './act.ts'
import type { BranchPoint, BranchPolicy, Grown, Growth } from './branch.ts'
import { condenseWalk } from './condensing/condense.ts'
import { closeWalk, outcomeOf } from './end-walk.ts'
import { copyWalk, forkEarlier, forkWalk, walkEarlier } from './fork-walk.ts'
import { sharesOf } from './shares.ts'
import { type Stepped, sampleWalks } from './siblings.ts'
import { noteDisposal, type Walk } from './walk.ts'
import { disposeOf } from './world/dispose.ts'

/** How a search decides and what it may spend. */
export interface SearchOptions {
  readonly branch: BranchPolicy
  readonly leaves: number
  readonly score: (path: Grown) => Promise<number | undefined>
}

interface GrownWalk extends Grown {
  readonly walk: Walk
}

/** A path that is about to begin, and its ending if its world cannot be forked. */
interface Fork {
  open(): Promise<Walk>
  failed(): Walk
}

/**
 * A search tree while it grows. All paths take a turn together, and decisions are made in the order
 * of their names, so that the same answers always give the same tree (S1).
 */
export class Search implements AsyncDisposable {
  readonly #options: SearchOptions
  readonly #first: Walk
  readonly #grown: GrownWalk[] = []
  readonly #worlds = new Set<AsyncDisposable>()
  #started = 1

  constructor(first: Walk, options: SearchOptions) {
    this.#first = first
    this.#options = options
    this.#worlds.add(first.world)
  }

  /** Lets every path come to its end, then grows on where the branch policy says. */
  async grow(): Promise<void> {
    const { branch, leaves, score } = this.#options
    await this.#run([this.#first])
    for (let round = 0; branch.grow && this.#started < leaves; round++) {
      const paths = this.#grown.toSorted(byBranch)
      const growths = await branch.grow({
        tree: this.#first.tree,
        paths,
        round,
        random: this.#random('grow', round),
        score,
      })
      if (growths.length === 0) return
      await this.#run(await this.#startGrowths(growths, round))
    }
  }

  /** The finished tree: its endings in the order of their names, with their shares. */
  finish(): Tree {
    const { tree } = this.#first
    const paths = this.#grown.toSorted(byBranch)
    const shares = sharesOf(
      tree,
      paths.map(({ ending }) => ending.end),
    )
    paths.forEach(({ ending }, index) => {
      tree.end({ ...ending, id: trajectoryId(tree.id, index), share: shares[index]! })
    })
    return tree
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const disposals = await Promise.allSettled([...this.#worlds].map(disposeOf))
    for (const disposal of disposals) {
      if (disposal.status === 'rejected') noteDisposal(this.#first, disposal.reason)
    }
  }

  async #run(walks: readonly Walk[]): Promise<void> {
    let active = [...walks]
    while (active.length > 0) {
      const branched = await this.#branchBefore(active)
      active = await this.#actAll(await this.#sampleAll(branched))
    }
  }

  async #branchBefore(active: readonly Walk[]): Promise<readonly Walk[]> {
    const { branch } = this.#options
    const all: Walk[] = []
    // Condense before forking, so that siblings share the result; a failure shows when the walk samples.
    await Promise.allSettled(active.map(condenseWalk))
    for (const walk of active) {
      const turn = walk.turns.length
      all.push(walk)
      if (walk.next.begun !== undefined) continue
      const starts = turn === 0 && walk.branch === '' ? (branch.starts ?? 1) : 1
      const width = Math.max(starts, branch.widthBefore?.(this.#point(walk, turn)) ?? 1)
      all.push(...(await this.#fork(walk, turn, width - 1)))
    }
    return all.sort(byBranch)
  }

  /** Samples a turn of every path; one that branches after its sample gives siblings of that turn. */
  async #sampleAll(active: readonly Walk[]): Promise<readonly Stepped[]> {
    const { branch } = this.#options
    if (!branch.widthAfter) return await sampleWalks(active)
    const before = new Map(active.map(walk => [walk, snapshot(walk)]))
    const sampled = await sampleWalks(active)
    const siblings: Walk[] = []
    for (const { walk } of sampled) {
      const start = before.get(walk)!
      if (walk.turns.length === start.turns) continue
      const width = branch.widthAfter(this.#point(walk, start.turns))
      for (const fork of await this.#fork(walk, start.turns, width - 1)) {
        siblings.push(rewind(fork, start))
      }
    }
    return [...sampled, ...(await sampleWalks(siblings))]
  }

  async #actAll(steps: readonly Stepped[]): Promise<Walk[]> {
    const going = await Promise.all(
      steps.map(async ({ walk, step }) => {
        const outcome = step.kind === 'end' ? step.outcome : await actOn(walk, step.reply)
        if (!outcome) return walk
        this.#grown.push({ branch: walk.branch, ending: await closeWalk(walk, outcome), walk })
        return undefined
      }),
    )
    return going.filter(walk => walk !== undefined).sort(byBranch)
  }

  /** Up to `wanted` forks, as long as endings are left; their names say where they began. */
  async #fork(walk: Walk, turn: number, wanted: number): Promise<readonly Walk[]> {
    const count = this.#reserve(wanted)
    const names = Array.from({ length: count }, (_, index) => `${walk.branch}/${turn}.${index + 1}`)
    return await this.#open(
      names.map(branch => ({
        open: () => forkWalk(walk, branch),
        failed: () => copyWalk(walk, { branch, world: walk.world }),
      })),
    )
  }

  /** Opens forks side by side; one whose world cannot be forked becomes a failed ending with the reason. */
  async #open(forks: readonly Fork[]): Promise<readonly Walk[]> {
    const opened = await Promise.all(
      forks.map(async ({ open, failed }) => {
        try {
          const walk = await open()
          this.#worlds.add(walk.world)
          return walk
        } catch (error) {
          const walk = failed()
          const outcome = outcomeOf(error, walk.attempt.signal)
          this.#grown.push({ branch: walk.branch, ending: await closeWalk(walk, outcome), walk })
          return undefined
        }
      }),
    )
    return opened.filter(walk => walk !== undefined)
  }

  async #startGrowths(growths: readonly Growth[], round: number): Promise<readonly Walk[]> {
    const affordable = growths.slice(0, this.#reserve(growths.length))
    return await this.#open(
      affordable.map((growth, index) => {
        const { walk } = this.#grown.find(({ branch }) => branch === growth.from.branch)!
        const branch = `${growth.from.branch}/${growth.turn}.g${round}-${index}`
        const at = { ...growth, branch }
        return {
          open: () => forkEarlier(walk, growth.from, at),
          failed: () => walkEarlier(walk, growth.from, at),
        }
      }),
    )
  }

  #reserve(wanted: number): number {
    const count = Math.max(0, Math.min(wanted, this.#options.leaves - this.#started))
    this.#started += count
    return count
  }

  #point(walk: Walk, turn: number): BranchPoint {
    return {
      branch: walk.branch,
      turn,
      calls: walk.calls.filter(call => call.turn === turn - 1),
      turns: walk.turns.map(each => segmentsOf(walk.tree, each)),
      random: this.#random('branch', walk.branch, turn),
    }
  }

  #random(...parts: readonly (string | number)[]): () => number {
    const { seed, task, member } = this.#first.attempt
    return random(seedOf(seed, task.id, member, ...parts))
  }
}

async function actOn(walk: Walk, reply: Parameters<typeof act>[1]): Promise<Outcome | undefined> {
  try {
    return await act(walk, reply)
  } catch (error) {
    return outcomeOf(error, walk.attempt.signal)
  }
}

/** What a path was before it sampled a turn. */
interface Snapshot {
  readonly place: Place
  readonly length: number
  readonly messages: number
  readonly shown: number
  readonly turns: number
  readonly sampled: number
}

function snapshot(walk: Walk): Snapshot {
  const { place, tokens, messages, shown, turns, used } = walk
  return {
    place,
    length: tokens.length,
    messages: messages.length,
    shown: shown.length,
    turns: turns.length,
    sampled: used.sampled,
  }
}

/** A fork that has yet to sample the turn its sibling has sampled. */
function rewind(walk: Walk, start: Snapshot): Walk {
  return {
    ...walk,
    place: start.place,
    tokens: walk.tokens.fork(start.length),
    messages: walk.messages.slice(0, start.messages),
    shown: walk.shown.slice(0, start.shown),
    turns: walk.turns.slice(0, start.turns),
    used: { ...walk.used, sampled: start.sampled },
  }
}

/** The sampled segments of a turn, in order. */
function segmentsOf(tree: Tree, turn: Turn): readonly SampledSegment[] {
  const segments: SampledSegment[] = []
  for (let node = turn.end.node; ; node = tree.nodes[node]!.parent.node) {
    const { segment } = tree.nodes[node]!
    if (segment.origin === 'sampled') segments.push(segment)
    if (node === turn.from || node === 0) return segments.reverse()
  }
}

function byBranch(a: { readonly branch: string }, b: { readonly branch: string }): number {
  if (a.branch === b.branch) return 0
  return a.branch < b.branch ? -1 : 1
}
