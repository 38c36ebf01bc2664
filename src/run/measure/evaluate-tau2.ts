import { parsePartName } from '../../base/core/names/part-name.ts'
import { type DomainName, Tau2Domain } from '../../worlds/tau2/domain.ts'
import type { RewardInfo } from '../../worlds/tau2/evaluate.ts'
import { computeMetrics, type MeasuredRun, type Tau2Metrics } from '../../worlds/tau2/metrics.ts'
import type { Tau2Report } from '../../worlds/tau2/report.ts'
import { splitTasks } from '../../worlds/tau2/splits.ts'
import type { Settings } from '../settings/settings.ts'
import { openRunReader } from '../store/store.ts'

/** Whether settings evaluate on tau2-bench. */
export function isTau2({ environment }: Pick<Settings, 'environment'>): boolean {
  return environment?.startsWith('tau2:') ?? false
}

/** The number of tasks of the evaluated split, which is rolled whole unless fewer are asked for. */
export function countTau2Tasks(values: Settings): number {
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
export async function measureTau2(run: string): Promise<Tau2Metrics | undefined> {
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
export function tau2Lines(metrics: Tau2Metrics): readonly string[] {
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
