import type { RewardInfo } from './evaluate.ts'
import type { Termination } from './orchestrator.ts'
import { PythonError } from './program/values.ts'

/** An attempt, as far as metrics ask about it. */
export interface MeasuredRun {
  readonly task: string
  readonly trial: number
  readonly reward: number
  readonly termination: Termination
  readonly agentCost: number | null
  readonly rewardInfo: Pick<RewardInfo, 'db_check' | 'action_checks'> | null
}

/** What the original measures over many attempts. */
export interface Tau2Metrics {
  readonly avg_reward: number
  readonly pass_hat_ks: Readonly<Record<number, number>>
  /** NaN if no attempt has a cost. */
  readonly avg_agent_cost: number
  readonly total_simulations: number
  readonly total_tasks: number
  readonly infra_error_count: number
  readonly total_read_actions: number
  readonly correct_read_actions: number
  readonly total_write_actions: number
  readonly correct_write_actions: number
  readonly db_match_count: number
  readonly db_mismatch_count: number
  readonly db_not_checked: number
  readonly termination_user_stop: number
  readonly termination_agent_stop: number
  readonly termination_max_steps: number
  readonly termination_error: number
}

/** Whether a reward counts as a success. */
const isSuccess = (reward: number): boolean => 1 - 1e-6 <= reward && reward <= 1 + 1e-6

/** The chance that `k` attempts at a task all succeed, from `n` of which `c` did. */
export function passHatK(n: number, c: number, k: number): number {
  if (n < k) throw new PythonError('ValueError', `Number of trials ${n} is less than k ${k}.`)
  return combinations(c, k) / combinations(n, k)
}

function combinations(n: number, k: number): number {
  if (k > n) return 0
  let result = 1
  for (let at = 1; at <= k; at++) result = (result * (n - k + at)) / at
  return Math.round(result)
}

/** What `compute_metrics` of the original gives; attempts that never ran are left out. */
export function computeMetrics(
  runs: readonly MeasuredRun[],
  { trials }: { readonly trials: number },
): Tau2Metrics {
  const ran = runs.filter(({ termination }) => termination !== 'infrastructure_error')
  const counts = ran.map(countRun)
  const total = (name: keyof RunCounts): number =>
    counts.reduce((sum, count) => sum + count[name], 0)
  return {
    avg_reward: ran.length === 0 ? 0 : mean(ran.map(({ reward }) => reward)),
    pass_hat_ks: passHats(ran, trials),
    avg_agent_cost:
      ran.length === 0
        ? 0
        : mean(ran.flatMap(({ agentCost }) => (agentCost === null ? [] : [agentCost]))),
    total_simulations: ran.length,
    total_tasks: new Set(ran.map(({ task }) => task)).size,
    infra_error_count: runs.length - ran.length,
    total_read_actions: total('read'),
    correct_read_actions: total('correctRead'),
    total_write_actions: total('write'),
    correct_write_actions: total('correctWrite'),
    db_match_count: total('match'),
    db_mismatch_count: total('mismatch'),
    db_not_checked: total('unchecked'),
    termination_user_stop: ran.filter(({ termination }) => termination === 'user_stop').length,
    termination_agent_stop: ran.filter(({ termination }) => termination === 'agent_stop').length,
    termination_max_steps: ran.filter(({ termination }) => termination === 'max_steps').length,
    termination_error: ran.filter(({ termination }) => ERRORS.includes(termination)).length,
  }
}

const ERRORS: readonly Termination[] = ['too_many_errors', 'agent_error', 'user_error']

const mean = (values: readonly number[]): number =>
  values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0) / values.length

interface RunCounts {
  readonly read: number
  readonly correctRead: number
  readonly write: number
  readonly correctWrite: number
  readonly match: number
  readonly mismatch: number
  readonly unchecked: number
}

function countRun({ rewardInfo }: MeasuredRun): RunCounts {
  const checks = rewardInfo?.action_checks ?? []
  const of = (type: string): typeof checks => checks.filter(check => check.tool_type === type)
  const right = (type: string): number => of(type).filter(check => check.action_match).length
  const database = rewardInfo?.db_check ?? null
  return {
    read: of('read').length,
    correctRead: right('read'),
    write: of('write').length,
    correctWrite: right('write'),
    match: database?.db_match === true ? 1 : 0,
    mismatch: database?.db_match === false ? 1 : 0,
    unchecked: database === null ? 1 : 0,
  }
}

/** `pass^k` for every `k` that all tasks have attempts for, the mean over tasks. */
function passHats(runs: readonly MeasuredRun[], trials: number): Readonly<Record<number, number>> {
  const tasks = new Map<string, { runs: number; successes: number }>()
  for (const { task, reward } of runs) {
    const known = tasks.get(task) ?? { runs: 0, successes: 0 }
    tasks.set(task, {
      runs: known.runs + 1,
      successes: known.successes + (isSuccess(reward) ? 1 : 0),
    })
  }
  const most = Math.min(trials, ...[...tasks.values()].map(task => task.runs))
  const hats: Record<number, number> = {}
  if (tasks.size === 0) return hats
  for (let k = 1; k <= most; k++) {
    hats[k] = mean([...tasks.values()].map(task => passHatK(task.runs, task.successes, k)))
  }
  return hats
}
