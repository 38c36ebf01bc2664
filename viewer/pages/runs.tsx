import { useEffect, useState } from 'preact/hooks'
import type { RunEntry } from '../../src/doors/view/answers.ts'
import { formatCount, formatDate, formatPolicy, formatShare } from '../data/format.ts'
import { goTo, hrefTo } from '../data/route.ts'
import { useSource } from '../data/use-data.ts'
import { openFile } from '../parts/drop-zone.tsx'
import { Waiting } from '../parts/states.tsx'

/** Every run that is open here. */
export function RunsPage({ runs, isLoaded }: { runs: readonly RunEntry[]; isLoaded: boolean }) {
  const only = runs.length === 1 && runs[0]!.status !== 'unreadable' ? runs[0]!.name : undefined
  useEffect(() => {
    if (only !== undefined) goTo(hrefTo(['run', only]), { replace: true })
  }, [only])
  if (!isLoaded)
    return (
      <div class="page">
        <Waiting what="runs" />
      </div>
    )
  const newestFirst = runs.toSorted((a, b) => (b.started ?? '').localeCompare(a.started ?? ''))
  return (
    <div class="page narrow">
      <h1>Runs</h1>
      {runs.length === 0 ? (
        <p class="lead">
          No run is open. <code>espalier demo</code> makes one, <code>espalier view RUN</code> opens
          it.
        </p>
      ) : (
        <ul class="runs">
          {newestFirst.map(run => (
            <RunLine key={run.name} run={run} />
          ))}
        </ul>
      )}
      <OpenFile />
    </div>
  )
}

function RunLine({ run }: { run: RunEntry }) {
  if (run.status === 'unreadable') {
    return (
      <li>
        <strong>{run.name}</strong>
        <p class="bad">{run.problem}</p>
      </li>
    )
  }
  return (
    <li>
      <a href={hrefTo(['run', run.name])}>
        <span>
          <strong>{run.name}</strong>
          <small>{run.origin.endsWith(run.name) ? '' : run.origin}</small>
        </span>
        <span>
          {run.environment ?? '–'}
          <small>{run.policy === undefined ? '' : formatPolicy(run.policy)}</small>
        </span>
        <span>
          <Result run={run} />
        </span>
        <span class="when">
          {run.kind}, {run.status}
          <small>{formatDate(run.started)}</small>
        </span>
      </a>
    </li>
  )
}

/** Success, and its change by training; what failed is said first. */
function Result({ run: { result, status } }: { run: RunEntry }) {
  if (!result) return <span class="muted">{status === 'running' ? 'under way' : 'no result'}</span>
  const { before, success, failed, trajectories } = result
  const isWorse = before !== null && success !== null && success < before
  return (
    <>
      {success === null ? (
        <span class="muted">nothing scored</span>
      ) : (
        <b class={isWorse ? 'bad' : ''}>
          {before !== null && `${formatShare(before)} → `}
          {formatShare(success)}
        </b>
      )}
      {failed > 0 && (
        <small class="bad">
          {formatCount(failed)} of {formatCount(trajectories)} failed
        </small>
      )}
    </>
  )
}

function OpenFile() {
  const source = useSource()
  const [problem, setProblem] = useState('')
  if (source.isFile) return null
  const open = (file: File | undefined): void => {
    if (!file) return
    void openFile(source.importFile, file, drop =>
      setProblem(drop.kind === 'failed' ? drop.problem : ''),
    )
  }
  return (
    <section>
      <h2>Other files</h2>
      <p class="muted">
        Rows of trainers, conversations and benchmark results open too: drop one anywhere on this
        page, or{' '}
        <label class="file">
          choose it
          <input type="file" onChange={event => open(event.currentTarget.files?.[0])} />
        </label>
        .
      </p>
      {problem !== '' && (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
    </section>
  )
}
