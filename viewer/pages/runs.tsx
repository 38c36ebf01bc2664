import { useEffect, useState } from 'preact/hooks'
import type { RunEntry } from '../../src/doors/view/answers.ts'
import { formatDate } from '../data/format.ts'
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
          {runs.map(run => (
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
        <strong>{run.name}</strong>
        <span class="muted">
          {run.kind}, {run.status} · {formatDate(run.started)}
        </span>
        <span class="muted">{run.origin}</span>
      </a>
    </li>
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
