import type { Message } from '@espalier/text'
import type { World } from '../../base/core/environment.ts'
import { across } from '../../base/core/failure.ts'
import { imagesTo } from '../../base/core/image.ts'
import { idsTo, lengthTo, type Place, pathEnds } from '../../base/core/tree.ts'
import type { Grown } from './branch.ts'
import { worldSteps } from './condensing/recall.ts'
import { forkCondensingState, lookedBefore } from './condensing/state.ts'
import { makeTokenBuffer } from './token-buffer.ts'
import { nothingUsed, type Walk } from './walk.ts'

/** Another walk from where this one stands, in a world of its own. */
export async function forkWalk(walk: Walk, branch: string): Promise<Walk> {
  const world = await across('environment', walk.attempt, () =>
    forkable(walk.world).fork(walk.attempt),
  )
  return copyWalk(walk, { branch, world })
}

/** Where a walk goes on from a path that has ended. */
export interface EarlierPlace {
  readonly turn: number
  /** A place inside that turn. @default its start */
  readonly place?: Place
  readonly branch: string
}

/** A walk from an earlier turn of a path, or from inside that turn. */
export async function forkEarlier(walk: Walk, from: Grown, at: EarlierPlace): Promise<Walk> {
  const { attempt } = walk
  const world = await across('environment', attempt, () =>
    forkable(walk.world).forkAt(worldSteps(from.ending.calls, at.turn), attempt),
  )
  return { ...walkEarlier(walk, from, at), world }
}

/** A walk from an earlier place of another one, still in that one's world. */
export function walkEarlier(walk: Walk, from: Grown, at: EarlierPlace): Walk {
  const { tree } = walk
  const { turns, messages, calls, events } = from.ending
  const begun = turns[at.turn]!
  const place = at.place ?? tree.nodes[begun.from]!.parent
  const forked = copyWalk(walk, { branch: at.branch, world: walk.world })
  const start = tree.nodes[begun.from]!.start
  return {
    ...forked,
    ...(walk.condensing && {
      condensing: lookedBefore(forkCondensingState(walk.condensing, at.turn), at.turn),
    }),
    place,
    tokens: makeTokenBuffer(idsTo(tree, place)),
    images: imagesTo(tree, place),
    turns: turns.slice(0, at.turn),
    messages: messages.slice(0, begun.messages),
    shown: shownAt(walk, from, at.turn),
    views: walk.views.filter(view => view.turn <= at.turn),
    calls: calls.filter(call => call.turn < at.turn),
    events: events.filter(({ turn }, index) => index < walk.openingEvents || turn < at.turn),
    forks: from.ending.fidelity.forks.slice(0, pathEnds(tree, place).length - 1),
    used: {
      ...forked.used,
      sampled: sampledBefore(walk, from, at.turn) + Math.max(0, lengthTo(tree, place) - start),
    },
    next: at.place ? { begun: begun.from } : {},
  }
}

/** What a path showed the policy before one of its turns. */
function shownAt({ views }: Walk, { ending }: Grown, turn: number): Message[] {
  const view = views.findLast(each => each.turn <= turn)
  const before = ending.messages.slice(view?.from ?? 0, ending.turns[turn]!.messages)
  return [...(view?.shown ?? []), ...before]
}

/** Tokens that the turns of a path before `turn` sampled. */
function sampledBefore({ tree }: Walk, { ending }: Grown, turn: number): number {
  return ending.turns
    .slice(0, turn)
    .reduce((sum, { from, end }) => sum + lengthTo(tree, end) - tree.nodes[from]!.start, 0)
}

/** A separate walk at the same place. */
export function copyWalk(
  walk: Walk,
  parts: { readonly branch: string; readonly world: World },
): Walk {
  const { sampled, servers } = walk.used
  return {
    ...walk,
    ...parts,
    ...(walk.condensing && {
      condensing: forkCondensingState(walk.condensing, walk.turns.length),
    }),
    tokens: walk.tokens.fork(walk.tokens.length),
    messages: [...walk.messages],
    shown: [...walk.shown],
    views: [...walk.views],
    turns: [...walk.turns],
    calls: [...walk.calls],
    events: [...walk.events],
    forks: [...walk.forks],
    used: { ...nothingUsed(), sampled, servers: new Set(servers) },
    next: {},
  }
}

function forkable(world: World): Required<Pick<World, 'fork' | 'forkAt'>> {
  const { fork, forkAt } = world
  if (fork && forkAt) return { fork: fork.bind(world), forkAt: forkAt.bind(world) }
  throw new Error('this world cannot be forked: open its environment with withFork')
}
