import { coverageOf } from '../../../base/core/credit.ts'
import { type Group, isHeldOut } from '../../../base/core/group.ts'
import type { GroupId } from '../../../base/core/ids.ts'
import { isSampled } from '../../../base/core/segment.ts'
import type { Trajectory } from '../../../base/core/trajectory.ts'
import type { Tree } from '../../../base/core/tree.ts'
import { costOfTree } from '../../../run/store/journal-index.ts'
import { type Listen, outcomeName, type RunEvent } from '../../../run/watch/events.ts'

/** What became of every token that a training run has sampled: `sampled` is the sum of all others. */
export interface Ledger {
  /** In attempts of groups that are complete, and in those that an interruption lost. */
  readonly sampled: number
  /** Given to the trainer. */
  readonly learned: number
  /** Learned from by nobody, by reason: a filter's name, `stale`, how an attempt failed. */
  readonly dropped: Readonly<Record<string, number>>
  /** In groups that are complete and wait for their step. */
  readonly inFlight: number
  /** In attempts at held-out tasks. */
  readonly heldOut: number
}

/** Keeps the ledger of a run. */
export interface Bookkeeper {
  /** Hears of every group that is complete. */
  readonly listen: Listen
  /** A step learned from some groups, and others had grown too old for it. */
  settle(groups: readonly Group[], stale: readonly Group[]): void
  read(): Ledger
}

/** What an interrupted run had sampled in all, and what of it was not counted yet and will be. */
export interface Interrupted {
  readonly everSampled: number
  /** In attempts that are not made again. */
  readonly kept: number
}

/** Makes a ledger; one that goes on has lost what was in flight and what came after its checkpoint: it is rolled again. */
export function makeLedger(from?: Ledger, interrupted?: Interrupted): Bookkeeper {
  const waiting = new Map<GroupId, number>()
  const dropped = new Map(Object.entries(from?.dropped ?? {}))
  let { sampled = 0, learned = 0, heldOut = 0 } = from ?? {}
  const drop = (reason: string, tokens: number): void => {
    if (tokens > 0) dropped.set(reason, (dropped.get(reason) ?? 0) + tokens)
  }
  const uncounted = interrupted ? interrupted.everSampled - interrupted.kept - sampled : 0
  sampled += Math.max(0, uncounted)
  drop('interrupted', (from?.inFlight ?? 0) + Math.max(0, uncounted))
  const settleOne = (group: Group, isStale: boolean): void => {
    waiting.delete(group.id)
    for (const [fate, tokens] of fatesOf(group)) {
      if (fate !== kept) drop(fate, tokens)
      else if (isStale) drop('stale', tokens)
      else learned += tokens
    }
  }
  const add = (group: Group): void => {
    const tokens = treesOf(group).reduce((sum, tree) => sum + costOfTree(tree).sampled, 0)
    sampled += tokens
    if (isHeldOut(group)) heldOut += tokens
    else waiting.set(group.id, tokens)
  }
  return {
    listen: Object.assign(
      (event: RunEvent): void => {
        if (event.kind === 'group-end') add(event.group)
      },
      // Attempts that begin and end together are of no concern.
      { together() {} },
    ),
    settle(groups, stale) {
      for (const group of groups) settleOne(group, stale.includes(group))
    },
    read: () => ({
      sampled,
      learned,
      dropped: Object.fromEntries(dropped),
      inFlight: [...waiting.values()].reduce((sum, tokens) => sum + tokens, 0),
      heldOut,
    }),
  }
}

/** The fate of what a trainer is given. */
const kept: unique symbol = Symbol('kept')
type Fate = string | typeof kept

/** How many sampled tokens of a group had which fate; one that any kept trajectory contains is kept. */
function fatesOf(group: Group): ReadonlyMap<Fate, number> {
  const sums = new Map<Fate, number>()
  for (const tree of treesOf(group)) {
    const fates = trajectoriesIn(group, tree).toSorted(
      (one, other) => Number(other.fate === kept) - Number(one.fate === kept),
    )
    const covered = new Map<number, number>()
    const count = (fate: Fate, node: number, to: number): void => {
      const from = covered.get(node) ?? 0
      if (to <= from || !isSampled(tree.nodes[node]!.segment)) return
      covered.set(node, to)
      sums.set(fate, (sums.get(fate) ?? 0) + to - from)
    }
    for (const { fate, trajectory } of fates) {
      for (const [node, to] of coverageOf(tree, trajectory)) count(fate, node, to)
    }
    tree.nodes.forEach(({ segment }, node) => {
      count('on no path', node, segment.ids.length)
    })
  }
  return sums
}

interface Fated {
  readonly fate: Fate
  readonly trajectory: Trajectory
}

function trajectoriesIn({ members, unscored }: Group, tree: Tree): readonly Fated[] {
  return [
    ...members
      .filter(member => member.tree === tree)
      .map(({ trajectory, dropped, advantage }): Fated => {
        const unkept = dropped?.filter ?? (advantage === null ? 'not compared' : undefined)
        return { fate: unkept ?? kept, trajectory }
      }),
    ...unscored
      .filter(each => each.tree === tree)
      .map(({ trajectory, outcome }): Fated => ({ fate: outcomeName(outcome), trajectory })),
  ]
}

function treesOf({ members, unscored }: Group): readonly Tree[] {
  return [...new Set([...members, ...unscored].map(({ tree }) => tree))]
}
