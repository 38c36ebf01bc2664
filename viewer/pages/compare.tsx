import { useCallback, useState } from 'preact/hooks'
import type {
  ComparisonAnswer,
  DifferenceAnswer,
  EvaluationPoint,
  PairRow,
  RunEntry,
} from '../../src/doors/view/answers.ts'
import {
  formatCount,
  formatFixed,
  formatNumber,
  formatShare,
  formatSigned,
} from '../data/format.ts'
import { goTo, hrefTo } from '../data/route.ts'
import type { SideRequest } from '../data/source.ts'
import { useData, useSource } from '../data/use-data.ts'
import { Empty } from '../parts/states.tsx'
import { type Column, VirtualTable } from '../parts/virtual-table.tsx'

type Params = Readonly<Record<string, string>>
type Page = ComparisonAnswer & { readonly rows: readonly PairRow[] }

/** Two runs, or two evaluations of one, task by task. */
export function ComparePage({ params, runs }: { params: Params; runs: readonly RunEntry[] }) {
  const names = runs.filter(({ status }) => status !== 'unreadable').map(({ name }) => name)
  const before =
    sideIn(params, 'before') ?? (names[0] === undefined ? undefined : { run: names[0] })
  const after = sideIn(params, 'after') ?? afterOf(before, names)
  const change = (name: 'before' | 'after', side: SideRequest): void => {
    const [left, right] = name === 'before' ? [side, after] : [before, side]
    goTo(
      hrefTo(['compare'], {
        before: left?.run,
        'before-step': left?.step,
        after: right?.run,
        'after-step': right?.step,
      }),
      { replace: true },
    )
  }
  return (
    <div class="fill">
      <header class="title tight">
        <h1>Compare</h1>
      </header>
      {before && after ? (
        <>
          <div class="sides">
            <SidePicker
              label="Before"
              side={before}
              names={names}
              onChange={side => change('before', side)}
            />
            <span aria-hidden="true">→</span>
            <SidePicker
              label="After"
              side={after}
              names={names}
              onChange={side => change('after', side)}
            />
          </div>
          <Pairs key={JSON.stringify([before, after])} before={before} after={after} />
        </>
      ) : (
        <Empty title="Nothing to compare yet">
          <p>Open two runs: espalier view RUN RUN.</p>
        </Empty>
      )}
    </div>
  )
}

function sideIn(params: Params, name: string): SideRequest | undefined {
  const run = params[name]
  const step = params[`${name}-step`]
  if (run === undefined) return undefined
  return step === undefined || Number.isNaN(Number(step)) ? { run } : { run, step: Number(step) }
}

function afterOf(
  before: SideRequest | undefined,
  names: readonly string[],
): SideRequest | undefined {
  const other = names.find(name => name !== before?.run) ?? before?.run
  return other === undefined ? undefined : { run: other }
}

interface PickerProps {
  readonly label: string
  readonly side: SideRequest
  readonly names: readonly string[]
  readonly onChange: (side: SideRequest) => void
}

function SidePicker({ label, side, names, onChange }: PickerProps) {
  const curves = useData(`curves ${side.run}`, source => source.curves(side.run))
  const points: readonly EvaluationPoint[] = curves.kind === 'ready' ? curves.value.evaluations : []
  return (
    <fieldset class="side">
      <legend>{label}</legend>
      <select
        aria-label={`${label}: run`}
        value={side.run}
        onChange={event => onChange({ run: event.currentTarget.value })}
      >
        {names.map(name => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      {points.length > 0 && (
        <select
          aria-label={`${label}: which groups`}
          value={side.step ?? ''}
          onChange={event => {
            const { value } = event.currentTarget
            onChange(value === '' ? { run: side.run } : { run: side.run, step: Number(value) })
          }}
        >
          <option value="">all that was learned from</option>
          {points.map(({ step, success }) => (
            <option key={step} value={step}>
              held out at step {step}, {formatShare(success)}
            </option>
          ))}
        </select>
      )}
    </fieldset>
  )
}

const widths = 'minmax(200px, 2fr) 90px 110px 110px 100px 90px 90px'

function Pairs({ before, after }: { before: SideRequest; after: SideRequest }) {
  const source = useSource()
  const [answer, setAnswer] = useState<Page | undefined>(undefined)
  const key = JSON.stringify([before, after])
  const load = useCallback(
    async (offset: number, limit: number): Promise<Page> => {
      const page = await source.compare(before, after, { offset, limit })
      return { ...page, rows: page.pairs }
    },
    [source, key],
  )
  return (
    <>
      {answer && <Differences answer={answer} />}
      <VirtualTable<PairRow, Page>
        label="Tasks"
        of={key}
        columns={columnsOf(before.run, after.run)}
        widths={widths}
        load={load}
        onPage={setAnswer}
        keyOf={row => row.task}
        hrefOf={row => hrefTo(['run', after.run, 'group'], { id: row.after.group })}
        rowClass={row => row.change}
        empty={<Empty title="No task in common" />}
      />
    </>
  )
}

function Differences({ answer }: { answer: ComparisonAnswer }) {
  return (
    <dl class="differences">
      <Difference label="Success" value={answer.success} format={formatShare} />
      <Difference label="Mean reward" value={answer.reward} format={formatNumber} />
      <Difference label="Sampled tokens" value={answer.tokens} format={formatNumber} />
      <div>
        <dt>Tasks</dt>
        <dd>
          <b>{formatCount(answer.tasks)}</b>
          <small>
            {formatCount(answer.gained)} gained, {formatCount(answer.lost)} lost
            {answer.unpaired > 0 && `, ${formatCount(answer.unpaired)} on one side only`}
          </small>
        </dd>
      </div>
    </dl>
  )
}

function Difference({
  label,
  value,
  format,
}: {
  label: string
  value: DifferenceAnswer
  format: (value: number) => string
}) {
  const isSure = value.low > 0 || value.high < 0
  return (
    <div>
      <dt>{label}</dt>
      <dd>
        <b>
          {format(value.before)} → {format(value.after)}
        </b>
        <small>
          {formatSigned(value.difference, 3)}, 95 % between {formatSigned(value.low, 3)} and{' '}
          {formatSigned(value.high, 3)}
          {isSure ? '' : ': may be chance'}
        </small>
      </dd>
    </div>
  )
}

/** The columns of the table; rewards lead to the groups they are of. */
function columnsOf(before: string, after: string): readonly Column<PairRow>[] {
  const link = (run: string, { group, reward }: PairRow['before']) => (
    <a href={hrefTo(['run', run, 'group'], { id: group })}>{formatFixed(reward)}</a>
  )
  return [
    { name: 'task', title: 'Task', about: 'What was attempted', cell: row => <b>{row.task}</b> },
    {
      name: 'change',
      title: 'Change',
      about: 'Gained: solved by most attempts now and not before; lost: the other way round',
      cell: row =>
        row.change === 'same' ? (
          <span class="muted">same</span>
        ) : (
          <span class={row.change === 'gained' ? 'tag good' : 'tag bad'}>{row.change}</span>
        ),
    },
    {
      name: 'before',
      title: 'Before',
      about: 'Mean reward before',
      isNumber: true,
      cell: row => link(before, row.before),
    },
    {
      name: 'after',
      title: 'After',
      about: 'Mean reward after',
      isNumber: true,
      cell: row => link(after, row.after),
    },
    {
      name: 'difference',
      title: 'Difference',
      about: 'Mean reward after, less before',
      isNumber: true,
      cell: row => formatSigned(row.difference),
    },
    {
      name: 'attempts',
      title: 'Attempts',
      about: 'Scored attempts before and after',
      isNumber: true,
      cell: row => `${row.before.attempts}, ${row.after.attempts}`,
    },
    {
      name: 'tokens',
      title: 'Tokens',
      about: 'Mean sampled tokens after, less before',
      isNumber: true,
      cell: row => formatSigned(row.after.tokens - row.before.tokens, 0),
    },
  ]
}
