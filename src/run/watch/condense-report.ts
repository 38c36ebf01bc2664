import { mean } from '../../base/math/statistics.ts'
import { addCondensing, type CondenseFigures, noCondensing } from './condense-figures.ts'
import type { GroupFigures } from './group-figures.ts'

/** What condensing did in a run, and its effect on rewards. */
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
  /** Chunks that could not be condensed and stayed as they were. */
  readonly failures: number
  /** Tokens that other models used for it; shared work is counted in each attempt. */
  readonly cost: { readonly prompt: number; readonly sampled: number }
  /** Summaries that the policy wrote itself, and their tokens. */
  readonly summaries: { readonly count: number; readonly prompt: number; readonly sampled: number }
  readonly recalls: {
    readonly count: number
    readonly perTrajectory: number
    readonly characters: number
    /** Tokens used to ask for blocks and to read them. */
    readonly sampled: number
    readonly observed: number
  }
  /** Mean reward of trajectories that recalled something, and of those that did not. */
  readonly reward: { readonly withRecall: number | null; readonly withoutRecall: number | null }
}

/** Adds up what condensing did; undefined if nothing was condensed. */
export interface CondenseReportBuilder {
  add(figures: Pick<GroupFigures, 'endings' | 'lengths' | 'condensing'>): void
  report(): CondenseReport | undefined
}

/** Opens a report on condensing. */
export function makeCondenseReport(): CondenseReportBuilder {
  const tally = makeTally()
  return {
    add({ endings, lengths, condensing = [] }) {
      for (let index = 0; index < lengths.length; index++) {
        // The scored trajectories come first.
        addTrajectory(tally, endings[index]?.[2], condensing[index] ?? undefined)
      }
    },
    report: () => (tally.sum.tried === 0 ? undefined : toReport(tally)),
  }
}

function makeTally() {
  return {
    all: 0,
    trajectories: 0,
    sum: noCondensing(),
    withRecall: [] as number[],
    withoutRecall: [] as number[],
  }
}

type Tally = ReturnType<typeof makeTally>

function addTrajectory(
  tally: Tally,
  reward: number | undefined,
  figures: CondenseFigures | undefined,
): void {
  tally.all++
  if (figures) addCondensing(tally.sum, figures)
  if (figures && figures.condensings > 0) tally.trajectories++
  if (reward === undefined) return
  const hasRecalled = figures !== undefined && figures.recalls.count > 0
  ;(hasRecalled ? tally.withRecall : tally.withoutRecall).push(reward)
}

function toReport({ all, trajectories, sum, withRecall, withoutRecall }: Tally): CondenseReport {
  const { before, after, recalls } = sum
  return {
    trajectories,
    share: trajectories / all,
    condensings: sum.condensings,
    failed: sum.failed,
    tokens: { before, after, ratio: after === 0 ? 1 : before / after },
    blocks: sum.blocks,
    failures: sum.failures,
    cost: sum.cost,
    summaries: sum.summaries,
    recalls: { ...recalls, perTrajectory: recalls.count / all },
    reward: { withRecall: meanOrNull(withRecall), withoutRecall: meanOrNull(withoutRecall) },
  }
}

function meanOrNull(values: readonly number[]): number | null {
  return values.length === 0 ? null : mean(values)
}
