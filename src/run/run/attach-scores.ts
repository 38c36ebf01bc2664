import type { Call } from '../../base/core/call.ts'
import { across } from '../../base/core/failure.ts'
import type { NonEmpty } from '../../base/core/ids.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import type { Policy } from '../../base/core/policy.ts'
import { type OtherLogprobs, type ScorerName, sampled } from '../../base/core/segment.ts'
import { isGradable } from '../../base/core/trajectory.ts'
import { idsTo, pathEnds, pathTo, restoreTree, type Tree } from '../../base/core/tree.ts'
import type { RolloutContext } from '../../engine/rollout/attempt.ts'
import { outcomeOf } from '../../engine/rollout/end-walk.ts'
import type { Strategy } from '../../engine/rollout/strategy.ts'

/** The policies that score what another one sampled, by their role. */
export type Scorers = Readonly<Partial<Record<ScorerName, Policy>>>

/**
 * Rolls with a strategy, then lets other policies score every sampled token, all paths at once as far as the policy
 * lane has room. If a scorer cannot be reached, the attempt fails, as data: it is never trained without its scores.
 */
export function withScorers(strategy: Strategy, scorers: Scorers): Strategy {
  const all = Object.entries(scorers) as [ScorerName, Policy][]
  if (all.length === 0) return strategy
  return async (context, attempt) => {
    const rolled = await strategy(context, attempt)
    const [first, ...rest] = toList(rolled)
    const scored = (tree: Tree): Promise<Tree> => scoreAll(tree, all, { context, call: attempt })
    return [await scored(first), ...(await Promise.all(rest.map(scored)))]
  }
}

/** What a strategy gave as a list: a tree, or that of every seat. */
function toList(rolled: Tree | NonEmpty<Tree>): NonEmpty<Tree> {
  return 'nodes' in rolled ? [rolled] : rolled
}

async function scoreAll(
  tree: Tree,
  all: readonly (readonly [ScorerName, Policy])[],
  scoring: Scoring,
): Promise<Tree> {
  if (!tree.trajectories.some(isGradable)) return tree
  try {
    return await scoredBy(tree, all, scoring)
  } catch (error) {
    return withOutcome(tree, outcomeOf(error, scoring.call.signal))
  }
}

/** A tree whose sampled tokens have the log-probabilities of these policies beside their own. */
export async function scoredBy(
  tree: Tree,
  all: readonly (readonly [ScorerName, Policy])[],
  scoring: Scoring,
): Promise<Tree> {
  const scored = await Promise.all(
    all.map(async ([name, policy]) => ({
      name,
      logprobs: await scoreTree(tree, policy, scoring),
    })),
  )
  return withOthers(tree, scored)
}

interface Scoring {
  readonly context: Pick<RolloutContext, 'lanes'>
  readonly call: Call
}

/** Per sampled node: the log-probabilities of its tokens under a policy. */
type ByNode = ReadonlyMap<number, Float32Array>

async function scoreTree(tree: Tree, policy: Policy, scoring: Scoring): Promise<ByNode> {
  const found = new Map<number, Float32Array>()
  const reached = new Map<number, number>()
  const ends = tree.trajectories.filter(isGradable).flatMap(({ end }) => pathEnds(tree, end))
  const wanted = ends.flatMap(end => {
    // Tokens that an earlier path shares are not scored again.
    const spans = pathTo(tree, end).filter(
      ({ node, length }) =>
        tree.nodes[node]!.segment.origin === 'sampled' && (reached.get(node) ?? 0) < length,
    )
    for (const { node, length } of spans) reached.set(node, length)
    return spans.length === 0 ? [] : [{ end, spans }]
  })
  await Promise.all(
    wanted.map(async ({ end, spans }) => {
      const last = spans.at(-1)!
      const ids = idsTo(tree, end).subarray(0, last.start + last.length)
      const from = spans[0]!.start
      const logprobs = await scorePath(policy, { ids, from, tree }, scoring)
      for (const { node, start, length } of spans) {
        const size = tree.nodes[node]!.segment.ids.length
        const own = found.get(node) ?? new Float32Array(size).fill(Number.NaN)
        own.set(logprobs.subarray(start - from, start - from + length))
        found.set(node, own)
      }
    }),
  )
  return found
}

function scorePath(
  policy: Policy,
  { ids, from, tree }: { readonly ids: Int32Array; readonly from: number; readonly tree: Tree },
  { context, call }: Scoring,
): Promise<Float32Array> {
  const { temperature } = tree.sampling
  const { signal } = call
  return context.lanes.policy.run({ signal }, () =>
    across('policy', { signal }, async () => {
      if (!policy.score) throw new Error(`${policy.name} cannot score tokens it did not sample`)
      const options = { temperature, session: tree.id }
      const { logprobs, basis } = await policy.score(ids, from, options, { signal })
      if (basis === 'tempered' || temperature === 1) return logprobs
      throw new Error(
        `${policy.name} gives ${basis} log-probabilities, which do not compare with samples at temperature ${temperature}`,
      )
    }),
  )
}

function withOthers(
  tree: Tree,
  scored: readonly { readonly name: ScorerName; readonly logprobs: ByNode }[],
): Tree {
  const nodes = tree.nodes.slice(1).map((node, index) => {
    const { segment } = node
    if (segment.origin !== 'sampled') return node
    const own = scored.flatMap(({ name, logprobs }) => {
      const values = logprobs.get(index + 1)
      return values ? [[name, values] as const] : []
    })
    const others: OtherLogprobs = { ...segment.others, ...Object.fromEntries(own) }
    return own.length === 0 ? node : { ...node, segment: sampled({ ...segment, others }) }
  })
  return restoreTree(tree, nodes, tree.trajectories)
}

/** A tree with this outcome for every gradable trajectory, so that none is scored. */
function withOutcome(tree: Tree, outcome: Outcome): Tree {
  const trajectories = tree.trajectories.map(each =>
    isGradable(each) ? { ...each, outcome } : each,
  )
  return restoreTree(tree, tree.nodes.slice(1), trajectories)
}
