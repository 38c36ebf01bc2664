import { parsePartName } from '../../base/core/names/part-name.ts'
import type { Benchmark } from '../../run/settings/offered.ts'
import type { Settings } from '../../run/settings/settings.ts'
import { tau2Bench } from '../../run/sinks/formats/tau2-bench.ts'
import { openRunReader } from '../../run/store/store.ts'
import { writeResults } from '../tau/benchmark.ts'
import { type DomainName, Tau2Domain } from './domain.ts'
import type { RewardInfo } from './evaluate.ts'
import { computeMetrics, type MeasuredRun, type Tau2Metrics } from './metrics.ts'
import type { Tau2Report } from './report.ts'
import { splitTasks } from './splits.ts'

function countTau2Tasks(values: Settings): number {
  const { variant, options } = parsePartName(values.environment!)
  const [root = '', predecessor] = [options.get('root'), options.get('predecessor')]
  const domain = new Tau2Domain({
    root,
    domain: variant as DomainName,
    retrieval: 'no_knowledge',
    ...(predecessor !== undefined && { predecessor }),
  })
  const splits = splitTasks(domain)
  const split = values.split ?? options.get('split') ?? 'test'
  const found = splits.get(split)
  if (found) return found.length
  throw new Error(
    `tau2-bench ${variant} has no split "${split}". Known: ${[...splits.keys()].join(', ')}.`,
  )
}

/** tau2-bench's own metrics of a run, equal to what its own code computes from the run's results. */
async function measureTau2(run: string): Promise<Tau2Metrics | undefined> {
  await using reader = await openRunReader(run)
  const runs: MeasuredRun[] = []
  let trials = 1
  for await (const { group } of reader.groups()) {
    for (const { trajectory, tree, reward } of group.members) {
      trials = Math.max(trials, tree.member + 1)
      runs.push(toRun(trajectory.report as Tau2Report, tree.member, reward.total))
    }
    for (const { tree } of group.unscored) {
      runs.push({ ...FAILED, task: group.task, trial: tree.member })
    }
  }
  return runs.length === 0 ? undefined : computeMetrics(runs, { trials })
}

const FAILED: Omit<MeasuredRun, 'task' | 'trial'> = {
  reward: 0,
  termination: 'infrastructure_error',
  agentCost: null,
  rewardInfo: null,
}

function toRun(report: Tau2Report, trial: number, reward: number): MeasuredRun {
  return {
    task: report.task_id,
    trial,
    reward,
    termination: report.termination_reason ?? 'max_steps',
    agentCost: null,
    rewardInfo: report.reward_info as unknown as RewardInfo | null,
  }
}

/** The figures that the original prints beside its rewards. */
function tau2Lines(metrics: Tau2Metrics): readonly string[] {
  const { db_match_count, db_mismatch_count, infra_error_count } = metrics
  const part = (right: number, all: number): string => `${right} of ${all}`
  return [
    `  tau2       average reward ${metrics.avg_reward}`,
    `  actions    ${part(metrics.correct_read_actions, metrics.total_read_actions)} reads, ${part(metrics.correct_write_actions, metrics.total_write_actions)} writes as in the right solution`,
    `  databases  ${part(db_match_count, db_match_count + db_mismatch_count)} right`,
    ...(infra_error_count > 0
      ? [`  ${infra_error_count} attempts failed outside the policy and are left out`]
      : []),
  ]
}

/** tau2-bench for `eval`: steps of both sides end a conversation. */
export const tau2Benchmark: Benchmark = {
  name: 'tau2',
  maxTurns: 200,
  countTasks: async values => countTau2Tasks(values),
  async measure(run) {
    const figures = await measureTau2(run)
    return figures && { figures, lines: tau2Lines(figures) }
  },
  // Failed attempts are left out.
  writeResults: (run, out) => writeResults(run, out, { format: tau2Bench, include: [] }),
}
