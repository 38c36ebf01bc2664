import type { Group, Unscored, Weighted } from '../core/group.ts'
import type { Trajectory, TrajectoryEvent } from '../core/trajectory.ts'
import { lengthTo, type Tree } from '../core/tree.ts'
import { mean } from '../math/statistics.ts'

/** What condensing did in a run, and what it was worth. */
export interface CondenseReport {
  /** Trajectories in which something was condensed, of all. */
  readonly trajectories: number
  readonly share: number
  /** How often a context was condensed, and how often that did not help. */
  readonly condensings: number
  readonly failed: number
  /** Tokens of the contexts before and after; the ratio is before over after. */
  readonly tokens: { readonly before: number; readonly after: number; readonly ratio: number }
  readonly blocks: number
  /** Chunks that could not be condensed and stand as they were. */
  readonly failures: number
  /** Tokens that other models took for it; what several attempts share is counted in each. */
  readonly cost: { readonly prompt: number; readonly sampled: number }
  /** Summaries that the policy wrote itself, and the tokens they took. */
  readonly summaries: { readonly count: number; readonly prompt: number; readonly sampled: number }
  readonly recalls: {
    readonly count: number
    readonly perTrajectory: number
    readonly characters: number
    /** Tokens that asking for blocks and reading them took. */
    readonly sampled: number
    readonly observed: number
  }
  /** Mean reward of trajectories that recalled something, and of those that did not. */
  readonly reward: { readonly withRecall: number | null; readonly withoutRecall: number | null }
}

/** Adds up what condensing did; gives nothing where nothing was condensed. */
export interface CondenseReportBuilder {
  add(group: Group): void
  report(): CondenseReport | undefined
}

/** Opens a report on condensing. */
export function openCondenseReport(): CondenseReportBuilder {
  const tally = openTally()
  return {
    add({ members, unscored }) {
      for (const member of [...members, ...unscored]) addMember(tally, member)
    },
    report: () => (tally.tried === 0 ? undefined : toReport(tally)),
  }
}

function openTally() {
  return {
    all: 0,
    tried: 0,
    trajectories: 0,
    condensings: 0,
    failed: 0,
    before: 0,
    after: 0,
    blocks: 0,
    failures: 0,
    cost: { prompt: 0, sampled: 0 },
    summaries: { count: 0, prompt: 0, sampled: 0 },
    recalls: { count: 0, characters: 0, sampled: 0, observed: 0 },
    withRecall: [] as number[],
    withoutRecall: [] as number[],
  }
}

type Tally = ReturnType<typeof openTally>

function addMember(tally: Tally, member: Weighted | Unscored): void {
  const { trajectory, tree } = member
  const { events } = trajectory
  tally.all++
  if (events.some(({ kind }) => kind === 'condensed')) tally.trajectories++
  for (const event of events) addEvent(tally, event)
  const hasRecalled = addRecalls(tally, tree, trajectory)
  if ('reward' in member) {
    ;(hasRecalled ? tally.withRecall : tally.withoutRecall).push(member.reward.total)
  }
}

function addEvent(tally: Tally, { kind, figures = {} }: TrajectoryEvent): void {
  const { before = 0, after = 0, blocks = 0, failures = 0, prompt = 0, sampled = 0 } = figures
  if (kind === 'condensed') {
    tally.condensings++
    tally.before += before
    tally.after += after
    tally.blocks += blocks
    tally.cost.prompt += prompt
    tally.cost.sampled += sampled
  } else if (kind === 'summary') {
    tally.summaries.count++
    tally.summaries.prompt += prompt
    tally.summaries.sampled += sampled
  } else if (kind === 'condense-failed') tally.failed++
  else return
  tally.failures += failures
  tally.tried++
}

/** What recalling cost: the turns that asked for a block, and what was observed after them. */
function addRecalls(tally: Tally, tree: Tree, { events, turns }: Trajectory): boolean {
  const recalled = events.filter(({ kind }) => kind === 'recalled')
  tally.recalls.count += recalled.length
  for (const { figures } of recalled) tally.recalls.characters += figures?.characters ?? 0
  for (const turn of new Set(recalled.map(event => event.turn))) {
    const { from, end } = turns[turn]!
    const next = turns[turn + 1]
    tally.recalls.sampled += lengthTo(tree, end) - tree.nodes[from]!.start
    // Where the context was condensed in between, the next turn stands on another path.
    const observed = next ? tree.nodes[next.from]!.start - lengthTo(tree, end) : 0
    tally.recalls.observed += Math.max(0, observed)
  }
  return recalled.length > 0
}

function toReport(tally: Tally): CondenseReport {
  const { all, before, after, recalls, withRecall, withoutRecall } = tally
  return {
    trajectories: tally.trajectories,
    share: tally.trajectories / all,
    condensings: tally.condensings,
    failed: tally.failed,
    tokens: { before, after, ratio: after === 0 ? 1 : before / after },
    blocks: tally.blocks,
    failures: tally.failures,
    cost: tally.cost,
    summaries: tally.summaries,
    recalls: { ...recalls, perTrajectory: recalls.count / all },
    reward: { withRecall: meanOrNull(withRecall), withoutRecall: meanOrNull(withoutRecall) },
  }
}

function meanOrNull(values: readonly number[]): number | null {
  return values.length === 0 ? null : mean(values)
}
