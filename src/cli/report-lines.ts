import { count, duration, percent } from '../base/core/names/units.ts'
import type { Ledger } from '../learn/learn/steps/ledger.ts'
import type { Trained } from '../learn/learn/train.ts'
import type { RunStanding } from '../run/store/run-folder.ts'
import type { RunReport } from '../run/watch/run-report.ts'
import { ledgerLine } from './ledger-line.ts'

/** A report for people, one line per subject; what has nothing to say is left out. */
export function reportLines(
  report: RunReport,
  standing: RunStanding = report.status,
): readonly string[] {
  return [
    `${report.kind} ${standing}${report.reason ? ` (${report.reason})` : ''}  ` +
      `${count(report.groups)} groups, ${count(report.trajectories)} trajectories in ${count(report.trees)} trees` +
      (report.evaluations ? ' that were learned from' : ''),
    ...evaluationLines(report),
    ...scoreLines(report),
    line('outcomes', counts(report.outcomes)),
    ...report.failures
      .slice(0, 5)
      .map(each => line('', `${each.count} × ${each.where}: ${each.message}`)),
    line('filters', counts(report.filters)),
    ...toolLines(report),
    ...wallLines(report),
    line('events', counts(report.events)),
    ...forkLines(report),
    ...condenseLines(report),
    ...costLines(report),
    line(
      'slowest',
      report.slowest
        .slice(0, 3)
        .map(each => `${each.trajectory} ${duration(each.seconds)} (${each.turns} turns)`)
        .join(', '),
    ),
    line('versions', versionsOf(report)),
    line('ledger', ledgerOf(report)),
    line('mismatch', mismatchOf(report)),
    line('log-probabilities', basisOf(report)),
    line('fidelity', counts(report.fidelity)),
    ...noteLines(report),
  ].filter(each => each !== '')
}

/** Evaluations have their own lines: success during training mixes many policy versions. */
function evaluationLines({ evaluations = [] }: RunReport): readonly string[] {
  return evaluations.flatMap(({ step, success, trajectories }, index) => {
    if (!success) return []
    const { low, high } = success.interval
    const when = step === 0 ? 'before training' : `after step ${step}`
    const rate = `${percent(success.rate)} (${percent(low)} to ${percent(high)})`
    const text = `${when}: success ${rate} of ${count(trajectories)}`
    return [line(index === 0 ? 'held out' : '', text)]
  })
}

/** The isolation around code that the policy wrote. */
function wallLines({ isolation }: RunReport): readonly string[] {
  if (!isolation) return []
  const { by, standing, missing } = isolation
  const lacking = missing.length > 0 ? `; missing: ${missing.join(', ')}` : ''
  return [line('walls', `${standing.join(', ') || 'none'}${lacking}${by ? ` (${by})` : ''}`)]
}

function noteLines({ warnings = [], clock = [], earlyStop }: RunReport): readonly string[] {
  const lengths = earlyStop?.lengths
  return [
    ...warnings.map(each => line('warning', `${each.sentinel}: ${each.message}`)),
    line('clock', clock.length > 0 ? `${clock.join(', ')} acted: a repetition may differ` : ''),
    lengths
      ? line(
          'early stop',
          `${count(lengths.kept)} tokens per attempt kept, ${lengths.cut === null ? 'none' : count(lengths.cut)} per attempt cut so far`,
        )
      : '',
  ]
}

function line(subject: string, text: string): string {
  return text === '' ? '' : `  ${subject.padEnd(10)} ${text}`
}

function counts(record: Readonly<Record<string, number>>): string {
  return Object.entries(record)
    .map(([name, number]) => `${name} ${count(number)}`)
    .join(', ')
}

function scoreLines(report: RunReport): readonly string[] {
  const { success, reward, groups, groupsWithContrast, evaluations } = report
  if (reward && 'shown' in reward.parts && !success) {
    return [line('success', 'unknown: what was imported has no rewards')]
  }
  if (!success || !reward) return ['  nothing was scored']
  const { low, high } = success.interval
  const parts = Object.entries(reward.parts).map(
    ([name, part]) =>
      `${name} ${part.mean.toFixed(3)}${part.weight === 1 ? '' : ` × ${part.weight}`}`,
  )
  return [
    line(
      'success',
      `${percent(success.rate)} (${percent(low)} to ${percent(high)}) with a reward of ${success.at} or more` +
        (evaluations ? ', over all steps of training' : ''),
    ),
    line(
      'reward',
      `${reward.mean.toFixed(3)} ± ${reward.deviation.toFixed(3)}  (${parts.join(', ')})`,
    ),
    line('contrast', `${groupsWithContrast} of ${groups} groups have different rewards`),
  ]
}

function toolLines({ tools }: RunReport): readonly string[] {
  return Object.entries(tools).map(([name, { calls, problems, seconds }], index) => {
    const wrong = counts(problems)
    const mean = duration(seconds / Math.max(1, calls))
    return line(
      index === 0 ? 'tools' : '',
      `${name} ${count(calls)} calls, ${mean} each${wrong ? `; ${wrong}` : ''}`,
    )
  })
}

/** What the answers say of the cache, or the server's own count if they say nothing. */
function cachedShare({ tokens, prefixCache }: RunReport): string {
  if (tokens.cached > 0) return `, ${percent(tokens.cached / tokens.prompt)} of it cached`
  if (!prefixCache) return ''
  return `, ${percent(prefixCache.found / prefixCache.asked)} of it cached, by the server's own count`
}

function costLines(report: RunReport): readonly string[] {
  const { tokens, turns, seconds } = report
  const { perTrajectory: per } = tokens
  const total = Object.values(seconds).reduce((sum, each) => sum + each, 0)
  const lanes = Object.entries(seconds)
    .filter(([, each]) => each > 0)
    .map(([lane, each]) => `${lane} ${duration(each)} (${percent(each / total)})`)
  return [
    line(
      'tokens',
      `${count(tokens.sampled)} sampled, ${count(tokens.prompt)} prompt${cachedShare(report)}`,
    ),
    line(
      'lengths',
      `${count(per.mean)} tokens on average, median ${count(per.median)}, 95 % under ${count(per.p95)}, at most ${count(per.most)}; ${turns.mean.toFixed(1)} turns`,
    ),
    line('time', lanes.length > 0 ? `${lanes.join(', ')}, summed over attempts side by side` : ''),
  ]
}

/** Only shown if recorded log-probabilities are not what a trainer computes. */
function basisOf({ untempered }: RunReport): string {
  return Object.entries(untempered)
    .map(([problem, tokens]) => `${count(tokens)} tokens ${problem}`)
    .join('; ')
}

function versionsOf({ versions }: RunReport): string {
  const names = Object.keys(versions.tokens)
  if (names.length < 2) return ''
  const { mixed, stale } = versions
  return `${names.length} versions, ${count(stale)} stale tokens, ${count(mixed)} in trees that mix versions`
}

function ledgerOf({ training }: RunReport): string {
  const { ledger } = (training ?? {}) as { readonly ledger?: Ledger }
  return ledger ? ledgerLine(ledger) : ''
}

/** How far trainer and sampler were apart, in the step where they were furthest. */
function mismatchOf({ training }: RunReport): string {
  const { mismatch } = (training ?? {}) as Partial<Pick<Trained, 'mismatch'>>
  // One engine agrees with itself up to rounding.
  if (!mismatch || mismatch.kl < 1e-6) return ''
  const { kl, step, byTurn = [] } = mismatch
  const turns = byTurn.map(each => each.toExponential(1)).join(', ')
  const told = turns === '' ? '' : `; turn by turn ${turns}`
  return `${kl.toExponential(1)} nats per token in step ${step}, the furthest${told}`
}

/** What rewritten conversations of agents cost; reports of older runs lack this. */
function forkLines({ forks = {} }: Partial<Pick<RunReport, 'forks'>>): readonly string[] {
  return Object.entries(forks).map(([cause, cost]) =>
    line(
      `fork:${cause}`,
      `${count(cost.count)} times, ${count(cost.read)} tokens read again or anew, ${count(cost.kept)} kept`,
    ),
  )
}

function condenseLines({ condensing }: RunReport): readonly string[] {
  if (!condensing) return []
  const { tokens, recalls, summaries, cost, reward } = condensing
  const own =
    summaries.count > 0
      ? `, ${summaries.count} summaries of ${count(summaries.sampled)} tokens`
      : ''
  const paid =
    cost.prompt > 0 ? `, ${count(cost.prompt + cost.sampled)} tokens of other models` : ''
  const failed = condensing.failed > 0 ? `, ${condensing.failed} times in vain` : ''
  const means = [reward.withRecall, reward.withoutRecall].map(each => each?.toFixed(3) ?? '–')
  return [
    line(
      'condensed',
      `${count(condensing.condensings)} times, ${count(tokens.before)} tokens to ` +
        `${count(tokens.after)} (${tokens.ratio.toFixed(1)} : 1)${own}${paid}${failed}`,
    ),
    recalls.count === 0
      ? ''
      : line(
          'recalled',
          `${count(recalls.count)} blocks, ${recalls.perTrajectory.toFixed(2)} a trajectory, ` +
            `${count(recalls.sampled + recalls.observed)} tokens; reward ${means[0]} with, ${means[1]} without`,
        ),
  ]
}
