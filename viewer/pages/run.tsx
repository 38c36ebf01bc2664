import type { Curves, RunAnswer, Warning } from '../../src/doors/view/answers.ts'
import {
  formatCount,
  formatDate,
  formatNumber,
  formatPolicy,
  formatSeconds,
  formatShare,
  formatShort,
} from '../data/format.ts'
import { hrefTo } from '../data/route.ts'
import { useData } from '../data/use-data.ts'
import { Chart } from '../parts/chart.tsx'
import { Evaluations } from '../parts/evaluations.tsx'
import { Bars, Figure, Figures } from '../parts/figure.tsx'
import { Json } from '../parts/json.tsx'
import { Empty, Show } from '../parts/states.tsx'
import { isWide } from '../parts/theme.tsx'
import { Workers } from '../parts/workers.tsx'

/** The results of a run so far. */
export function RunPage({ name }: { name: string }) {
  const run = useData(`run ${name}`, source => source.run(name))
  const curves = useData(`curves ${name}`, source => source.curves(name))
  return (
    <div class="page">
      <Show of={run} what="the run">
        {value => (
          <>
            <Heading run={value} />
            <Verdict run={value} />
            <Alarms run={value} />
            <Show of={curves} what="curves">
              {drawn => <Evaluations points={drawn.evaluations} run={name} />}
            </Show>
            <Sums run={value} />
            <Workers workers={value.workers} />
            <Show of={curves} what="curves">
              {drawn => <Charts curves={drawn} />}
            </Show>
            <Details run={value} />
          </>
        )}
      </Show>
    </div>
  )
}

function Heading({ run }: { run: RunAnswer }) {
  const { environment, policy, config } = run
  const parts = [
    environment,
    policy === undefined ? undefined : formatPolicy(policy),
    config.strategy === undefined ? undefined : String(config.strategy),
  ].filter(part => part !== undefined)
  return (
    <header class="title">
      <h1>{run.name}</h1>
      <p class="meta">
        <span class={`status ${run.status}`}>
          {run.kind} {run.status}
        </span>
        {parts.map(part => (
          <span key={part}>{part}</span>
        ))}
        <span>{formatDate(run.started)}</span>
        {run.finished !== undefined && (
          <span>
            {formatSeconds((Date.parse(run.finished) - Date.parse(run.started ?? '')) / 1000)}
          </span>
        )}
      </p>
      {run.reason !== undefined && <p class="muted">Stopped: {run.reason}</p>}
    </header>
  )
}

/** What is wrong, on top, with what to do. */
function Alarms({ run }: { run: RunAnswer }) {
  const { damage } = run.progress
  const failures = Object.entries(run.sums.failures)
  if (run.warnings.length === 0 && failures.length === 0 && damage === undefined) return null
  return (
    <section class="alarms" aria-label="Warnings">
      {damage !== undefined && (
        <article>
          <h2>The journal is damaged</h2>
          <p>{damage}</p>
          <p class="muted">What came before the damage is shown here.</p>
        </article>
      )}
      <Failures failures={failures} of={run.sums.trajectories} />
      <Warnings alarms={bySentinel(run.warnings)} />
    </section>
  )
}

const mostFailures = 5

/** How many attempts failed, and the most frequent reasons. */
function Failures({ failures, of }: { failures: readonly [string, number][]; of: number }) {
  if (failures.length === 0) return null
  const failed = failures.reduce((sum, [, count]) => sum + count, 0)
  const more = failures.length - mostFailures
  return (
    <article>
      <h2>
        {formatCount(failed)} of {formatCount(of)} trajectories failed
      </h2>
      {failures.slice(0, mostFailures).map(([reason, count]) => (
        <p key={reason}>
          {capital(reason)} <span class="muted">({formatCount(count)} times)</span>
        </p>
      ))}
      {more > 0 && <p class="muted">{more} other reasons</p>}
      <p class="muted">What failed has no reward, and nothing is learned from it.</p>
    </article>
  )
}

/** What the report says came of it. */
function Verdict({ run }: { run: RunAnswer }) {
  if (!run.verdict) return null
  const { isGood, text } = run.verdict
  return <p class={isGood ? 'verdict good' : 'verdict'}>{text}</p>
}

/** A few warnings are shown in full; many are listed in lines that open. */
function Warnings({ alarms }: { alarms: readonly Alarm[] }) {
  if (alarms.length === 0) return null
  const names = alarms.map(({ sentinel }) => sentinel.replaceAll('-', ' ')).join(', ')
  return (
    <details open={alarms.length < 3}>
      <summary>
        <b>{alarms.length === 1 ? 'A warning' : `${alarms.length} warnings`}</b>: {names}
      </summary>
      {alarms.map(({ sentinel, messages, likely }) => (
        <article key={`${sentinel} ${likely}`}>
          <h2>{sentinel.replaceAll('-', ' ')}</h2>
          {messages.map(message => (
            <p key={message}>{capital(message)}.</p>
          ))}
          <p class="muted">Likely: {likely}.</p>
        </article>
      ))}
    </details>
  )
}

interface Alarm {
  readonly sentinel: string
  readonly messages: readonly string[]
  readonly likely: string
}

/** Warnings of one sentinel together: what to do is said once. */
function bySentinel(warnings: readonly Warning[]): readonly Alarm[] {
  const alarms = new Map<string, Alarm>()
  for (const { sentinel, message, likely } of warnings) {
    const key = `${sentinel} ${likely}`
    const messages = alarms.get(key)?.messages ?? []
    alarms.set(key, { sentinel, likely, messages: [...messages, message] })
  }
  return [...alarms.values()]
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

function Sums({ run }: { run: RunAnswer }) {
  const { sums, progress } = run
  if (progress.groups === 0) {
    return (
      <Empty
        title={run.status === 'running' ? 'No group is complete yet' : 'This run has no groups'}
      >
        <p>
          {run.status === 'running'
            ? 'This page follows the run: what ends appears here.'
            : 'It ended before one was complete.'}
        </p>
      </Empty>
    )
  }
  const hasEvaluations = sums.groups < progress.groups
  const groups = hrefTo(['run', run.name, 'groups'], { part: hasEvaluations ? 'rolled' : '' })
  return (
    <Figures>
      <Figure
        value={<a href={groups}>{formatShort(sums.groups)}</a>}
        label="Groups"
        note={`${formatCount(sums.trajectories)} trajectories`}
      />
      <Figure
        value={formatShare(sums.success?.rate)}
        label="Success"
        note={
          sums.success
            ? `${formatShare(sums.success.low)} to ${formatShare(sums.success.high)}, reward ≥ ${run.successAt}`
            : 'nothing was scored'
        }
      />
      <Figure
        value={formatNumber(sums.reward)}
        label="Mean reward"
        note={`${formatCount(sums.scored)} scored`}
      />
      {Object.entries(sums.seats).map(([seat, reward]) => (
        <Figure key={seat} value={formatNumber(reward)} label={`Seat ${seat}`} note="mean reward" />
      ))}
      <Figure
        value={sums.compared === 0 ? '–' : formatShare(sums.contrast / sums.compared)}
        label="Groups with contrast"
        note={`${formatCount(sums.contrast)} of ${formatCount(sums.compared)} compared`}
      />
      <Figure
        value={formatShort(sums.sampled)}
        label="Sampled tokens"
        note={`${formatShort(sums.prompt)} prompt, ${formatShort(sums.cached)} cached`}
      />
      {progress.looked < progress.trees && (
        <Figure
          value={formatShare(progress.looked / progress.trees)}
          label="Looked through"
          note="lengths, tools and time follow"
        />
      )}
    </Figures>
  )
}

function Charts({ curves }: { curves: Curves }) {
  if (curves.charts.length === 0 || curves.charts[0]!.x.length === 0) return null
  return (
    <section aria-label={`Curves by ${curves.axis}`}>
      <h2 class="section">
        Course{' '}
        <small>by {curves.axis === 'step' ? 'training step' : 'group, in the run’s order'}</small>
      </h2>
      <div class="charts">
        {curves.charts.map(chart => (
          <Chart
            key={chart.name}
            chart={chart}
            axis={chart.name === 'pace' && curves.axis === 'group' ? 'second' : curves.axis}
          />
        ))}
      </div>
    </section>
  )
}

function Details({ run }: { run: RunAnswer }) {
  const { sums } = run
  const entries = (record: Readonly<Record<string, number>>) => Object.entries(record)
  const lanes = entries(sums.seconds).filter(([, value]) => value > 0)
  const tools = Object.entries(sums.tools).map(
    ([name, { calls, problems }]) =>
      [problems > 0 ? `${name}, ${problems} refused` : name, calls] as const,
  )
  const lists = [
    { title: 'Outcomes', items: entries(sums.outcomes), format: formatCount },
    { title: 'Time by lane', items: lanes, format: formatSeconds },
    { title: 'Tool calls', items: tools, format: formatCount },
    { title: 'Filtered', items: entries(sums.filters), format: formatCount },
    { title: 'Fidelity', items: entries(sums.fidelity), format: formatCount },
  ].filter(({ items }) => items.length > 0)
  return (
    <>
      <div class="columns">
        {lists.map(({ title, items, format }) => (
          <section key={title}>
            <h2 class="section">{title}</h2>
            <Bars items={items.slice(0, 12)} format={format} />
          </section>
        ))}
      </div>
      <div class="columns wide">
        <Settings title="Settings" values={run.config} isOpen={isWide()} />
        <Settings
          title="Versions"
          values={{
            ...run.versions,
            folder: run.folder,
            tokens:
              'name' in run.model ? `written by ${run.model.name}` : `as ids: ${run.model.problem}`,
          }}
        />
      </div>
      {run.report !== null && (
        <details>
          <summary>Report, as it was written</summary>
          <Json value={run.report} />
        </details>
      )}
    </>
  )
}

function Settings({
  title,
  values,
  isOpen = true,
}: {
  title: string
  values: Readonly<Record<string, unknown>>
  isOpen?: boolean
}) {
  return (
    <details class="section" open={isOpen}>
      <summary>
        <h2>{title}</h2>
      </summary>
      <dl class="settings">
        {Object.entries(values).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
          </div>
        ))}
      </dl>
    </details>
  )
}
