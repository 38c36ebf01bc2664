import type { Unscored, Weighted } from '../../base/core/group.ts'
import { parsePartName } from '../../base/core/names/part-name.ts'
import { count } from '../../base/core/names/units.ts'
import { exportWhole, openExport } from '../../run/exchange/export.ts'
import { isUnscored } from '../../run/rows/row-record.ts'
import type { Benchmark } from '../../run/settings/offered.ts'
import type { Settings } from '../../run/settings/settings.ts'
import type { Format } from '../../run/sinks/format.ts'
import { takeTrial, taskNumber, tauBench } from '../../run/sinks/formats/tau-bench.ts'
import { openRunReader } from '../../run/store/store.ts'
import type { DomainName } from './domain.ts'
import { loadTau } from './load.ts'
import { formatMetrics, measure, type TauMetrics, type TauTrial } from './metrics.ts'
import type { TauReport } from './report.ts'

/** The result of an evaluation in tau-bench's own metrics. */
export interface TauEvaluated extends TauMetrics {
  /** Attempts that failed outside the policy; as in the original they count 0 in every figure here. */
  readonly failed: number
  /** Tokens and cost of simulating the users; null if no model played them. */
  readonly user: TauReport['user']
}

async function countTauTasks(values: Settings): Promise<number> {
  const { variant, options } = parsePartName(values.environment!)
  const root = options.get('root') ?? ''
  const { tasks } = await loadTau({ root, domain: variant as DomainName })
  const split = values.split ?? options.get('split') ?? 'test'
  const found = tasks[split]
  if (found) return found.length
  const known = Object.keys(tasks).join(', ')
  throw new Error(`tau-bench ${variant} has no split "${split}". Known: ${known}.`)
}

/** tau-bench's own metrics of a run, equal to what its own code computes from the run's results. */
export async function measureTau(run: string): Promise<TauEvaluated | undefined> {
  await using reader = await openRunReader(run)
  const attempts: TauTrial[] = []
  const counted = new Set<string>()
  let failed = 0
  let user: TauEvaluated['user'] = null
  for await (const source of reader.groups()) {
    failed += source.group.unscored.length
    for (const member of [...source.group.members, ...source.group.unscored]) {
      const taskId = taskNumber(source, member.trajectory.report)
      const trial = takeTrial(taskId, member.tree.member, counted)
      attempts.push({ taskId, trial, reward: isUnscored(member) ? 0 : member.reward.total })
      user = addUsage(user, userOf(member))
    }
  }
  return attempts.length === 0 ? undefined : { ...measure(attempts), failed, user }
}

function userOf({ trajectory }: Weighted | Unscored): TauEvaluated['user'] {
  return (trajectory.report as Partial<TauReport> | undefined)?.user ?? null
}

function addUsage(all: TauEvaluated['user'], more: TauEvaluated['user']): TauEvaluated['user'] {
  if (!all || !more) return all ?? more
  return {
    calls: all.calls + more.calls,
    prompt: all.prompt + more.prompt,
    sampled: all.sampled + more.sampled,
    cost: all.cost === null || more.cost === null ? null : all.cost + more.cost,
  }
}

/** Writes results in a benchmark's own form. The file appears when it is whole. */
export async function writeResults(
  run: string,
  out: string,
  { format, include }: { readonly format: Format; readonly include: readonly 'failed'[] },
): Promise<void> {
  await using reader = await openRunReader(run)
  const file = await openExport(format, {
    out,
    run,
    weighting: 'uniform',
    appears: 'whole',
    include,
  })
  await exportWhole(file, async () => {
    for await (const source of reader.groups()) await file.write(source)
  })
}

/** tau-bench's own metrics, and the cost of its simulated users. */
function tauLines(tau: TauEvaluated): readonly string[] {
  const { user, failed } = tau
  const cost = user && user.cost !== null ? `, cost ${user.cost.toFixed(4)}` : ''
  return [
    ...(user
      ? [
          `  users      ${count(user.calls)} calls, ${count(user.prompt)} tokens read, ${count(user.sampled)} said${cost}`,
        ]
      : []),
    ...(failed > 0
      ? [
          `  ${count(failed)} attempts failed outside the policy; below they count 0, as in the original`,
        ]
      : []),
    formatMetrics(tau).trimEnd(),
  ]
}

/** tau-bench for `eval`: steps are those that its own agents may take. */
export const tauBenchmark: Benchmark = {
  name: 'tau',
  maxTurns: 30,
  countTasks: countTauTasks,
  async measure(run) {
    const figures = await measureTau(run)
    return figures && { figures, lines: tauLines(figures) }
  },
  // Failed attempts are written with reward 0.
  writeResults: (run, out) => writeResults(run, out, { format: tauBench, include: ['failed'] }),
}
