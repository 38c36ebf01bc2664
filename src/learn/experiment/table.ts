import { armMean, type ExperimentComparison, type ExperimentResult } from './result.ts'

/** The result as Markdown, to be pasted into a page or a paper. The same cells give the same text. */
export function experimentTable(result: ExperimentResult): string {
  return [
    `# ${result.question}`,
    '',
    designLine(result),
    '',
    ...armsTable(result),
    '',
    ...comparisonsTable(result),
    '',
    ...notes(result).map(note => `- ${note}`),
    '',
  ].join('\n')
}

function designLine({ budget, seeds, arms, missing }: ExperimentResult): string {
  const what = {
    tokens: 'sampled tokens to learn from',
    seconds: 'seconds of learning',
    money: 'of the price’s currency',
  }
  const left = missing === 0 ? '' : ` ${missing} of its cells have not finished.`
  return `${arms.length} arms × ${seeds.length} seeds (${seeds.map(({ seed }) => seed).join(', ')}); every cell has ${number(budget.most)} ${what[budget.kind]}.${left}`
}

function armsTable(result: ExperimentResult): readonly string[] {
  const rows = result.arms.map(({ name, against, look }) => {
    const of = (value: Parameters<typeof armMean>[2]) => armMean(result, name, value).mean
    const { count } = armMean(result, name, () => 0)
    const mark = look > 0 ? ' (added after looking)' : ''
    const numbers = [
      of(cell => cell.before),
      of(cell => cell.after),
      of(cell => cell.rewardAfter),
    ].map(three)
    const changes = against === null ? '' : changesOf(result, name)
    return `| ${name}${mark} | ${changes} | ${count} | ${numbers.join(' | ')} | ${number(Math.round(of(cell => cell.tokens)))} | ${percent(of(cell => cell.overshoot))} |`
  })
  return [
    '| arm | changes | cells | success before | after | reward after | tokens | beyond the budget |',
    '|---|---|---|---|---|---|---|---|',
    ...rows,
  ]
}

function changesOf({ arms }: ExperimentResult, name: string): string {
  const arm = arms.find(each => each.name === name)!
  const base = arms.find(each => each.name === arm.against)!
  const names = [...new Set([...Object.keys(arm.settings), ...Object.keys(base.settings)])].sort()
  return names
    .filter(key => JSON.stringify(arm.settings[key]) !== JSON.stringify(base.settings[key]))
    .map(key => `${key} ${shown(base.settings[key])} → ${shown(arm.settings[key])}`)
    .join('; ')
}

const shown = (value: unknown): string =>
  value === undefined
    ? 'default'
    : (typeof value === 'string' ? value : JSON.stringify(value)).replaceAll('|', '\\|')

function comparisonsTable({ comparisons, isSequential }: ExperimentResult): readonly string[] {
  const bounds = isSequential ? '95 % at every look' : '95 %'
  return [
    `| comparison | metric | pairs | difference (${bounds}) | better | p | p after Holm | could have seen |`,
    '|---|---|---|---|---|---|---|---|',
    ...comparisons.map(comparisonRow),
  ]
}

function comparisonRow(comparison: ExperimentComparison): string {
  const { arm, against, metric, pairs, difference, better, p, adjusted, couldHaveSeen } = comparison
  const { value, low, high } = difference
  const range = low === null || high === null ? 'unbounded' : `${signed(low)} to ${signed(high)}`
  const text = `${signed(value)} (${range})`
  return `| ${arm} − ${against} | ${metric} | ${pairs} | ${adjusted < 0.05 ? `**${text}**` : text} | ${percent(better)} | ${probability(p)} | ${probability(adjusted)} | ${couldHaveSeen === null ? '–' : three(couldHaveSeen)} |`
}

function notes({
  comparisons,
  isSequential,
  cells,
  arms,
  seeds,
}: ExperimentResult): readonly string[] {
  const mixed = comparisons.filter(({ changed }) => changed.length > 1)
  const added = arms.filter(({ look }) => look > 0).map(({ name }) => name)
  const later = seeds.filter(({ look }) => look > 0).length
  const furthest = Math.max(0, ...cells.map(({ overshoot }) => overshoot))
  return [
    'Differences are of held-out results after training, paired by seed; “better” is the probability that the arm is better, given these differences alone.',
    `${comparisons.length === 1 ? 'One comparison was' : `${comparisons.length} comparisons were`} made; bold is below 0.05 after correcting for all of them (Holm).`,
    ...(isSequential
      ? [
          `${later === 1 ? 'One seed was' : `${later} seeds were`} added after results had been seen: bounds and p hold however often one looks.`,
        ]
      : []),
    ...(added.length > 0 ? [`Arms added after results had been seen: ${added.join(', ')}.`] : []),
    ...mixed.map(
      ({ arm, against, changed }) =>
        `${arm} differs from ${against} in ${changed.join(', ')}: what of it made the difference is not shown.`,
    ),
    ...(furthest > 0.1
      ? [
          `A cell went ${percent(furthest)} beyond its budget with its last step: smaller steps compare more fairly.`,
        ]
      : []),
  ]
}

const number = (value: number): string => value.toLocaleString('en-US')
const three = (value: number): string => (Number.isFinite(value) ? value.toFixed(3) : '–')
const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`
const percent = (value: number): string =>
  Number.isFinite(value) ? `${(100 * value).toFixed(1)} %` : '–'
const probability = (value: number): string => (value < 0.001 ? '< 0.001' : value.toFixed(3))
