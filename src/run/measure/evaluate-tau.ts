import type { Unscored, Weighted } from '../../base/core/group.ts'
import { parsePartName } from '../../base/core/names/part-name.ts'
import type { DomainName } from '../../worlds/tau/domain.ts'
import { loadTau } from '../../worlds/tau/load.ts'
import { measure, type TauMetrics, type TauTrial } from '../../worlds/tau/metrics.ts'
import type { TauReport } from '../../worlds/tau/report.ts'
import { exportWhole, openExport } from '../exchange/export.ts'
import type { Settings } from '../settings/settings.ts'
import type { Format } from '../sinks/format.ts'
import { takeTrial, taskNumber, tauBench } from '../sinks/formats/tau-bench.ts'
import { isUnscored } from '../sinks/row-record.ts'
import { openRunReader } from '../store/store.ts'

/** The result of an evaluation in tau-bench's own metrics. */
export interface TauEvaluated extends TauMetrics {
  /** Attempts that failed outside the policy; as in the original they count 0 in every figure here. */
  readonly failed: number
  /** Tokens and cost of simulating the users; null if no model played them. */
  readonly user: TauReport['user']
}

/** Whether settings evaluate on tau-bench. */
export function isTau({ environment }: Pick<Settings, 'environment'>): boolean {
  return environment?.startsWith('tau:') ?? false
}

/** The number of tasks of the evaluated split, which is rolled whole unless fewer are asked for. */
export async function countTauTasks(values: Settings): Promise<number> {
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
  const taken = new Set<string>()
  let failed = 0
  let user: TauEvaluated['user'] = null
  for await (const source of reader.groups()) {
    failed += source.group.unscored.length
    for (const member of [...source.group.members, ...source.group.unscored]) {
      const taskId = taskNumber(source, member.trajectory.report)
      const trial = takeTrial(taskId, member.tree.member, taken)
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

/** Writes results as the original does. The file appears when it is whole. */
export async function writeTauResults(
  run: string,
  out: string,
  format: Format = tauBench,
): Promise<void> {
  await using reader = await openRunReader(run)
  const file = await openExport(format, {
    out,
    run,
    weighting: 'uniform',
    appears: 'whole',
    // tau-bench writes failed attempts with reward 0; tau2-bench leaves them out of its results.
    include: format === tauBench ? ['failed'] : [],
  })
  await exportWhole(file, async () => {
    for await (const source of reader.groups()) await file.write(source)
  })
}
