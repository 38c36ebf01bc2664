import type { Message } from '@espalier/text'
import type { Group, Unscored, Weighted } from '../src/base/core/group.ts'
import type { GroupId, TaskId, TreeId } from '../src/base/core/ids.ts'
import { plainSampling } from '../src/base/core/policy.ts'
import { given, sampled } from '../src/base/core/segment.ts'
import type { Gradable, Trajectory, Turn } from '../src/base/core/trajectory.ts'
import { type GrowingTree, type Place, plantTree, root, type Tree } from '../src/base/core/tree.ts'
import { grpoAdvantages } from '../src/base/math/advantages/grpo.ts'
import type { ExportGroup } from '../src/run/sinks/format.ts'
import { dice, endAt, randomTree } from './random-tree.ts'

/** How the members of a test group differ from plain ones. */
export interface GroupParts {
  readonly id?: string
  /** Members that a filter dropped. */
  readonly dropped?: readonly number[]
  /** Trajectories that failed, beside the members. */
  readonly failed?: number
  /** Members whose history was rewritten before their last turn. */
  readonly rewritten?: readonly number[]
  /** Members whose policy gave no log-probabilities. */
  readonly blind?: readonly number[]
}

/** A group of chains of two turns with a tool call between them, weighed by GRPO. */
export function chainGroup(rewards: readonly number[], parts: GroupParts = {}): Group {
  const { id = 'pears', dropped = [], failed = 0 } = parts
  const trees = [...rewards, ...Array.from({ length: failed }, () => 0)].map((_, member) =>
    chainTree(`${id}/${member}`, member, parts),
  )
  const members = rewards.map((total, member) => ({
    tree: trees[member]!,
    trajectory: trees[member]!.trajectories[0] as Gradable,
    reward: { total, parts: [{ name: 'exact', score: total, weight: 1 }] },
    dropped: dropped.includes(member)
      ? ({ filter: 'test', reason: 'dropped by the test', from: 'loss' } as const)
      : null,
    weight: 1,
  }))
  const unscored: Unscored[] = trees.slice(rewards.length).map(tree => ({
    tree,
    trajectory: tree.trajectories[0]!,
    outcome: { kind: 'failed', boundary: 'tool', message: 'broke' },
  }))
  return weighed({ id: id as GroupId, task: id as TaskId, members, unscored })
}

/** A group of random trees with forks, rewrites and several endings, with messages to their turns. */
export function treeGroup(
  seed: number,
  trees = 3,
  shape: Parameters<typeof randomTree>[1] = {},
): Group {
  const { next, chance } = dice(seed + 77)
  const grown = Array.from({ length: trees }, (_, member) =>
    withMessages({ ...randomTree(seed * 100 + member, shape), member }),
  )
  const all = grown.flatMap(tree => tree.trajectories.map(trajectory => ({ tree, trajectory })))
  const members = all
    .filter(({ trajectory }) => trajectory.outcome.kind !== 'failed')
    .map(({ tree, trajectory }) => ({
      tree,
      trajectory: trajectory as Gradable,
      reward: { total: Math.round(next() * 4) / 4, parts: [] },
      dropped: chance(0.1)
        ? ({ filter: 'test', reason: 'dropped by the test', from: 'loss' } as const)
        : null,
      weight: 1,
    }))
  const unscored: Unscored[] = all
    .filter(({ trajectory }) => trajectory.outcome.kind === 'failed')
    .map(each => ({ ...each, outcome: each.trajectory.outcome as Unscored['outcome'] }))
  return weighed({ id: 'g' as GroupId, task: 'task' as TaskId, members, unscored })
}

/** Chains that a limit cut after the tool's answer, so that observed tokens stand last. */
export function cutGroup(rewards: readonly number[], parts: GroupParts = {}): Group {
  const { members, ...rest } = chainGroup(rewards, parts)
  const cut = members.map(member => {
    const { nodes } = member.tree
    const observed = nodes.findIndex(({ segment }) => segment.origin === 'observed')
    const trajectory: Gradable = {
      ...member.trajectory,
      turns: member.trajectory.turns.slice(0, 1),
      end: { node: observed, offset: nodes[observed]!.segment.ids.length },
      outcome: { kind: 'truncated', limit: 'turns' },
    }
    const tree = {
      ...member.tree,
      nodes: nodes.slice(0, observed + 1),
      trajectories: [trajectory],
    }
    return { ...member, trajectory, tree }
  })
  return { ...rest, members: cut }
}

/** A group of one tree: a sampled prefix of three tokens, and two endings of one token. */
export function plainTree(): Group {
  const tree = growing('t/0')
  const speak = (at: Place, ...ids: number[]): Place =>
    tree.append(
      at,
      sampled({
        ids: Int32Array.from(ids),
        logprobs: Float32Array.from(ids, () => -0.5),
        version: { from: 1, to: 1 },
      }),
    )
  const prefix = speak(tree.append(root, given('prompt', Int32Array.of(1, 2))), 3, 4, 5)
  const turn = (end: Place): Turn => ({
    from: end.node,
    end,
    finish: { kind: 'stop' },
    messages: 1,
  })
  for (const id of [6, 7]) {
    const end = speak(prefix, id)
    const turns = [{ ...turn(prefix), end }]
    tree.end(withOwnMessages(endAt(tree, end, { turns, share: 0.5 })))
  }
  return groupOfLeaves(tree)
}

/** The endings of a tree as a group, each rewarded with its number. */
export function groupOfLeaves(tree: Tree): Group {
  const members = tree.trajectories.map((trajectory, index) => ({
    tree,
    trajectory: trajectory as Gradable,
    reward: { total: index, parts: [] },
    dropped: null,
    weight: 1,
  }))
  return weighed({ id: 't' as GroupId, task: 't' as TaskId, members, unscored: [] })
}

/** A group of trees with a log-probability for every sampled token. */
export function seeingGroup(group: Group): Group {
  const fill = new Map(
    [...group.members, ...group.unscored].map(({ tree }) => [
      tree,
      {
        ...tree,
        nodes: tree.nodes.map(node =>
          node.segment.origin === 'sampled' && node.segment.logprobs === null
            ? {
                ...node,
                segment: {
                  ...node.segment,
                  logprobs: new Float32Array(node.segment.ids.length).fill(-1),
                },
              }
            : node,
        ),
      },
    ]),
  )
  return {
    ...group,
    members: group.members.map(each => ({ ...each, tree: fill.get(each.tree)! })),
    unscored: [],
  }
}

/** A group as exports take it. */
export function toExport(group: Group, order = 0): ExportGroup {
  return { group, task: { id: group.task, data: { prompt: 'How many pears?' } }, order }
}

type Unweighed = Omit<Group, 'members'> & { members: readonly Omit<Weighted, 'advantage'>[] }

/** The group with GRPO's advantages. */
export function weighed(group: Unweighed, options?: Parameters<typeof grpoAdvantages>[1]): Group {
  const advantages = grpoAdvantages(
    group.members.map(({ trajectory, tree, reward }) => ({
      group: group.id,
      trajectory: trajectory.id,
      tree: tree.id,
      reward: reward.total,
      weight: 1,
      length: 1,
    })),
    options,
  )
  const members = group.members.map((member, index) => ({
    ...member,
    advantage: advantages[index] ?? null,
  }))
  return { ...group, members }
}

function chainTree(id: string, member: number, { rewritten = [], blind = [] }: GroupParts): Tree {
  const tree = plantTree({
    id: id as TreeId,
    task: id.split('/')[0] as TaskId,
    member,
    seed: 7 + member,
    sampling: { ...plainSampling, temperature: 0.8 },
    tools: [
      {
        type: 'function',
        function: { name: 'count', parameters: { type: 'object', properties: {} } },
      },
    ],
    renderer: 'test',
  })
  // Groups say different things, so that a token tells which group it is of.
  const base = 100 * (member + 1) + (id.startsWith('pears') ? 0 : 1000 * id.charCodeAt(0))
  const speak = (at: Place, from: number): Place =>
    tree.append(
      at,
      sampled({
        ids: Int32Array.of(from, from + 1, from + 2),
        logprobs: blind.includes(member) ? null : Float32Array.of(-0.5, -0.25, -(member + 1) / 8),
        version: { from: 3, to: 3 },
      }),
    )
  const first = speak(tree.append(root, given('prompt', Int32Array.of(1, 2, 3, 4))), base)
  const observed = given('observed', Int32Array.of(9, 8))
  const second = rewritten.includes(member)
    ? speak(
        tree.append(root, given('prompt', Int32Array.of(1, 7, 7)), {
          kind: 'rewrites',
          of: first,
          by: 'test',
          reason: 'condensed by the test',
        }),
        base + 10,
      )
    : speak(tree.append(first, observed), base + 10)
  tree.end(endAt(tree, second, chainParts(member, first, second)))
  return tree
}

function chainParts(member: number, first: Place, second: Place): Partial<Trajectory> {
  const stop = { kind: 'stop' } as const
  const messages: readonly Message[] = [
    { role: 'user', content: 'How many pears?' },
    {
      role: 'assistant',
      content: 'I count.',
      reasoning_content: 'Let me look.',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'count', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', name: 'count', content: '4' },
    { role: 'assistant', content: `There are ${member}.` },
  ]
  return {
    messages,
    turns: [
      { from: first.node, end: first, finish: stop, messages: 1 },
      { from: second.node, end: second, finish: stop, messages: 3 },
    ],
    calls: [{ turn: 0, id: 'c1', tool: 'count', input: {}, output: '4', seconds: 0.1 }],
    usage: { sampled: 6, prompt: 13 },
  }
}

/** Gives every turn of a random tree a message: turn k speaks at message 2k + 1. */
function withMessages(tree: Tree): Tree {
  return { ...tree, trajectories: tree.trajectories.map(withOwnMessages) }
}

function withOwnMessages(trajectory: Trajectory): Trajectory {
  const turns: readonly Turn[] = trajectory.turns.map((turn, index) => ({
    ...turn,
    messages: 2 * index + 1,
  }))
  const messages = turns.flatMap((turn, index): readonly Message[] => [
    { role: 'user', content: index === 0 ? 'Go.' : `Seen ${index}.` },
    { role: 'assistant', content: `Turn ${index} at node ${turn.end.node}.` },
  ])
  return { ...trajectory, turns, messages }
}

/** A tree that can still grow, for tests that need a shape of their own. */
export function growing(id: string, member = 0): GrowingTree {
  return plantTree({
    id: id as TreeId,
    task: id.split('/')[0] as TaskId,
    member,
    seed: 1,
    sampling: plainSampling,
    tools: [],
    renderer: 'test',
  })
}
