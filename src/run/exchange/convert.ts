import type { Message, Renderer } from '@espalier/text'
import { describeCause } from '../../base/core/failure.ts'
import type { Group, Judged } from '../../base/core/group.ts'
import type { TreeId } from '../../base/core/ids.ts'
import { given, type Segment, sampled } from '../../base/core/segment.ts'
import type { Fork, Trajectory, Turn } from '../../base/core/trajectory.ts'
import {
  type GrowingTree,
  idsTo,
  type Lineage,
  type Place,
  placeAt,
  plantTree,
  root,
  type Tree,
} from '../../base/core/tree.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import { commonLength } from '../../engine/rollout/act.ts'
import type { Estimate } from '../../engine/weigh/estimate.ts'
import { weigh } from '../../engine/weigh/gather.ts'
import { newManifest } from '../store/manifest.ts'
import { createRun, readManifest, writeManifest } from '../store/run-folder.ts'
import { openRunReader, openRunWriter, type RunWriter, type StoredGroup } from '../store/store.ts'
import { type Distance, makeDistance } from './distance.ts'

/** How turns are put behind prompts of their own. */
export interface StepOptions {
  readonly renderer: Renderer
  /** Turns before the current one that its prompt holds. */
  readonly history: number
  /** Whether tokens keep the log-probabilities they were sampled with, behind the whole conversation. */
  readonly keepsLogprobs: boolean
}

/** How a run is converted. */
export interface ConvertOptions extends Omit<StepOptions, 'keepsLogprobs'> {
  readonly out: string
  /** Scores the tokens of a tree behind their new prompts, as `proximal`. @default they have no log-probabilities */
  readonly score?: (tree: Tree) => Promise<Tree>
  readonly estimate: Estimate
  readonly weighting: LeafWeighting
  readonly config: Readonly<Record<string, unknown>>
}

/** What was converted. */
export interface Converted {
  readonly groups: number
  readonly trajectories: number
  /** Turns, each a sample of its own now. */
  readonly turns: number
  /** How far the scores behind the new prompts are from what was sampled, if there are some. */
  readonly distance?: Distance
}

/**
 * Makes single-turn samples of a run's multi-turn trajectories: each turn after a prompt of the
 * opening and the last few actions and observations, without reasoning. The policy did not sample
 * them from these prompts: they are off-policy. If they are scored, they keep the log-probabilities they
 * were sampled with, and importance weights are the ratios between the two.
 */
export async function convertRun(run: string, options: ConvertOptions): Promise<Converted> {
  const { out, config } = options
  await using reader = await openRunReader(run)
  const lock = await createRun(out, newManifest('convert', config))
  const manifest = await readManifest(out)
  const writer = await openRunWriter(out, lock)
  const counts = { groups: 0, trajectories: 0, turns: 0 }
  const tally = makeDistance()
  try {
    for await (const stored of reader.groups()) {
      const converted = await writeConverted(writer, stored, options)
      counts.groups++
      for (const { trajectory } of [...converted.members, ...converted.unscored]) {
        counts.trajectories++
        counts.turns += trajectory.turns.length
      }
      for (const tree of treesOf(converted)) tally.add(tree)
    }
    await writer.complete()
    const finished = new Date().toISOString()
    await writeManifest(out, { ...manifest, status: 'finished', finished })
  } catch (error) {
    await writeManifest(out, { ...manifest, status: 'stopped', reason: describeCause(error) })
    throw error
  } finally {
    await writer[Symbol.asyncDispose]()
  }
  return { ...counts, ...(options.score && { distance: tally.read() }) }
}

async function writeConverted(
  writer: RunWriter,
  { group, task, order }: StoredGroup,
  options: ConvertOptions,
): Promise<Group> {
  const { score } = options
  const bare = convertGroup(group, { ...options, keepsLogprobs: score !== undefined })
  const converted = score ? await scoreGroup(bare, score) : bare
  for (const tree of treesOf(converted)) await writer.writeTree(tree)
  const members = converted.members.map(
    ({ tree, trajectory, reward, dropped }): Judged => ({ tree, trajectory, reward, dropped }),
  )
  const weighed = weigh({ ...converted, members }, options)
  await writer.writeGroup(weighed, task, order)
  return weighed
}

async function scoreGroup(
  group: Group,
  score: NonNullable<ConvertOptions['score']>,
): Promise<Group> {
  const trees = [...treesOf(group)]
  const scored = await Promise.all(trees.map(score))
  return withTrees(group, scored)
}

function treesOf({ members, unscored }: Group): ReadonlySet<Tree> {
  return new Set([...members, ...unscored].map(({ tree }) => tree))
}

/** A group whose trees are converted; what its members are worth and weigh stays. */
export function convertGroup(group: Group, options: StepOptions): Group {
  return mapTrees(group, tree => convertTree(tree, options))
}

/** A group with other trees of the same trajectories. */
export function mapTrees(group: Group, change: (tree: Tree) => Tree): Group {
  return withTrees(group, [...treesOf(group)].map(change))
}

function withTrees(group: Group, changed: readonly Tree[]): Group {
  const trees = new Map<TreeId, Tree>(changed.map(tree => [tree.id, tree]))
  const find = <T extends { tree: Tree; trajectory: Trajectory }>(member: T): T => {
    const tree = trees.get(member.tree.id)!
    const trajectory = tree.trajectories.find(({ id }) => id === member.trajectory.id)!
    return { ...member, tree, trajectory }
  }
  return { ...group, members: group.members.map(find), unscored: group.unscored.map(find) }
}

/** The turns of a tree in a new one, each on a path of its own behind a bounded prompt. */
export function convertTree(from: Tree, options: StepOptions): Tree {
  const { nodes: _nodes, trajectories, ...header } = from
  const to = plantTree(pick(header))
  const prompts = new Map<number, Prompted>()
  const numbers = new Map<number, number>()
  for (const trajectory of trajectories) {
    const forks: Fork[] = []
    let before: Place = root
    const turns = trajectory.turns.map((turn, index) => {
      const prompted =
        prompts.get(turn.from) ?? putPrompt(to, { from, trajectory, index, before, options })
      prompts.set(turn.from, prompted)
      if (prompted.fork) forks.push(prompted.fork)
      const copied = copyTurn(from, to, { turn, at: prompted.end, numbers, options })
      before = copied.end
      return { ...turn, ...copied }
    })
    to.end(endOf(trajectory, { turns, forks, end: before }))
  }
  return to
}

function pick(header: Omit<Tree, 'nodes' | 'trajectories'>): Parameters<typeof plantTree>[0] {
  const { id, task, member, seed, sampling, tools, renderer } = header
  return { id, task, member, seed, sampling, tools, renderer }
}

const offPolicy = 'off-policy: sampled behind the whole conversation, not behind this prompt'

function endOf(
  trajectory: Trajectory,
  { turns, forks, end }: { turns: readonly Turn[]; forks: readonly Fork[]; end: Place },
): Trajectory {
  const { views: _views, ...rest } = trajectory
  const { fidelity, events } = trajectory
  const kind = fidelity.kind === 'exact' && forks.length > 0 ? 'forked' : fidelity.kind
  return {
    ...rest,
    turns,
    end,
    fidelity: { kind, forks },
    events: [...events, { kind: 'converted', turn: 0, detail: offPolicy }],
  }
}

/** The end of a turn's prompt in the new tree. */
interface Prompted {
  readonly end: Place
  readonly fork?: Fork
}

function putPrompt(
  to: GrowingTree,
  turn: {
    readonly from: Tree
    readonly trajectory: Trajectory
    readonly index: number
    readonly before: Place
    readonly options: StepOptions
  },
): Prompted {
  const { from, trajectory, index, before, options } = turn
  const { turns } = trajectory
  const start = from.nodes[turns[index]!.from]!.parent
  // The first turn was sampled from its opening; it stays as it was.
  if (index === 0) return { end: to.append(root, given('prompt', idsTo(from, start))) }
  const ids = options.renderer.render(lastTurns(trajectory, index, options.history), from.tools)
  const keep = commonLength(idsTo(to, before), ids)
  const reason = `turn ${index} is shown the opening and the last ${Math.min(index, options.history)} turns; ${offPolicy}`
  const lineage: Lineage = { kind: 'rewrites', of: before, by: 'convert', reason }
  const end = to.append(placeAt(to, before, keep), given('observed', ids.subarray(keep)), lineage)
  return { end, fork: { at: keep, reason } }
}

/** The opening and what was done and observed in the last turns before one. */
function lastTurns(
  { turns, messages }: Trajectory,
  index: number,
  history: number,
): readonly Message[] {
  const opening = messages.slice(0, turns[0]!.messages)
  const first = turns[Math.max(0, index - history)]!.messages
  const shown =
    history === 0
      ? messages.slice(turns[index - 1]!.messages + 1, turns[index]!.messages)
      : messages.slice(first, turns[index]!.messages)
  return [...opening, ...shown.map(withoutReasoning)]
}

function withoutReasoning(message: Message): Message {
  if (message.role !== 'assistant') return message
  const { reasoning_content: _reasoning, ...said } = message
  return said
}

/** Copies what a turn sampled; what siblings share is there once. */
function copyTurn(
  from: Tree,
  to: GrowingTree,
  {
    turn,
    at,
    numbers,
    options,
  }: {
    readonly turn: Turn
    readonly at: Place
    readonly numbers: Map<number, number>
    readonly options: StepOptions
  },
): Pick<Turn, 'from' | 'end'> {
  const nodes: number[] = []
  for (let node = turn.end.node; ; node = from.nodes[node]!.parent.node) {
    nodes.push(node)
    if (node === turn.from || node === 0) break
  }
  for (const node of nodes.reverse()) {
    if (numbers.has(node)) continue
    const { segment, parent } = from.nodes[node]!
    const place = node === turn.from ? at : { ...parent, node: numbers.get(parent.node)! }
    const copied = options.keepsLogprobs ? segment : withoutLogprobs(segment)
    numbers.set(node, to.append(place, copied).node)
  }
  return {
    from: numbers.get(turn.from)!,
    end: { ...turn.end, node: numbers.get(turn.end.node)! },
  }
}

function withoutLogprobs(segment: Segment): Segment {
  if (segment.origin !== 'sampled') return segment
  const { ids, version, basis } = segment
  return sampled({ ids, logprobs: null, version, basis })
}
