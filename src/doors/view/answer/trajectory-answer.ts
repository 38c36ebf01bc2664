import { type CreditSpan, creditByNode } from '../../../base/core/credit.ts'
import type { Trajectory } from '../../../base/core/trajectory.ts'
import { lengthTo, type Place, pathEnds, pathTo, type Tree } from '../../../base/core/tree.ts'
import { leafWeightNames } from '../../../base/math/credit.ts'
import { dataOf, type LoadedGroup, type LoadedMember, memberRow } from '../index/stored-group.ts'
import type { PathAnswer, TrajectoryAnswer, TurnAnswer } from '../trajectory-shapes.ts'

/** What tokens of a tree are trained with, node by node. */
export type Credits = ReadonlyMap<number, readonly CreditSpan[]>

/** The credit of every node of a tree, from the members of its group that are trained. */
export function creditsOf(tree: Tree, group: LoadedGroup, weighting: unknown): Credits {
  const credits = group.members.flatMap(({ tree: each, trajectory, scored }) => {
    if (each.id !== tree.id || !scored || scored.dropped || scored.advantage === null) return []
    const { advantage, weight, turns, stretches } = scored
    return {
      trajectory: trajectory.id,
      advantage,
      weight,
      ...(turns && { turns }),
      ...(stretches && { stretches }),
    }
  })
  return creditByNode(tree, credits, leafWeightNames.find(each => each === weighting) ?? 'uniform')
}

/** All that is known of a trajectory but its tokens. */
export function trajectoryAnswer(
  group: LoadedGroup,
  member: LoadedMember,
  weighting: unknown,
): Omit<TrajectoryAnswer, 'images'> {
  const { tree, trajectory, scored, outcome } = member
  const { record } = group
  const credits = creditsOf(tree, group, weighting)
  const { id, share, messages, views, calls, report, fidelity, usage, events, volatile } =
    trajectory
  return {
    id,
    tree: tree.id,
    group: record.id,
    task: { id: record.task.id, data: dataOf(record) },
    ...(tree.seat !== undefined && { seat: tree.seat }),
    step: record.step ?? null,
    members: group.members.map(memberRow),
    outcome,
    reward: scored?.reward ?? null,
    dropped: scored?.dropped ?? null,
    advantage: scored?.advantage ?? null,
    weight: scored?.weight ?? 0,
    share,
    messages,
    turns: turnsOf(tree, trajectory, credits),
    views: views ?? [],
    calls,
    report: report ?? null,
    fidelity,
    usage,
    events,
    volatile,
    paths: pathsOf(tree, trajectory),
    sampling: tree.sampling,
    seed: tree.seed,
    renderer: tree.renderer,
    tools: tree.tools,
    endings: tree.trajectories.length,
  }
}

function turnsOf(tree: Tree, trajectory: Trajectory, credits: Credits): readonly TurnAnswer[] {
  const ends = pathEnds(tree, trajectory.end)
  const nodes = ends.map(end => new Set(pathTo(tree, end).map(({ node }) => node)))
  return trajectory.turns.map(({ from, end, finish, messages, reward, anchor }) => {
    const sampled = sampledNodes(tree, from, end)
    const logprobs = sampled.flatMap(node => [...(tree.nodes[node]!.segment.logprobs ?? [])])
    const first = tree.nodes[from]!
    const { version } = first.segment
    return {
      messages,
      finish,
      path: Math.max(
        0,
        nodes.findIndex(each => each.has(from)),
      ),
      start: first.start,
      end: lengthTo(tree, end),
      version: [version?.from ?? 0, tree.nodes[end.node]!.segment.version?.to ?? version?.to ?? 0],
      advantage: credits.get(from)?.[0]?.advantage ?? null,
      meanLogprob:
        logprobs.length === 0
          ? null
          : logprobs.reduce((sum, each) => sum + each, 0) / logprobs.length,
      ...(reward !== undefined && { reward }),
      ...(anchor !== undefined && { anchor }),
    }
  })
}

/** The nodes that a turn sampled: several if it was resumed under newer weights. */
function sampledNodes(tree: Tree, from: number, end: Place): readonly number[] {
  const nodes: number[] = []
  for (let node = end.node; ; node = tree.nodes[node]!.parent.node) {
    if (tree.nodes[node]!.segment.origin === 'sampled') nodes.push(node)
    if (node === from || node === 0) return nodes.reverse()
  }
}

/** The token sequences a trajectory went through, oldest first. */
function pathsOf(tree: Tree, trajectory: Trajectory): readonly PathAnswer[] {
  return pathEnds(tree, trajectory.end).map((end, index) => {
    const spans = pathTo(tree, end)
    const sampled = spans
      .filter(({ node }) => tree.nodes[node]!.segment.origin === 'sampled')
      .reduce((sum, { length }) => sum + length, 0)
    const rewriting = spans.findLast(({ node }) => tree.nodes[node]!.lineage.kind === 'rewrites')
    const lineage = rewriting && tree.nodes[rewriting.node]!.lineage
    return {
      tokens: lengthTo(tree, end),
      sampled,
      ...(index > 0 &&
        lineage?.kind === 'rewrites' && {
          rewrite: { by: lineage.by, reason: lineage.reason, kept: rewriting!.start },
        }),
    }
  })
}
