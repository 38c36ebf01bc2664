import type { WorkerRow } from '../../src/doors/view/answers.ts'
import { formatCount, formatNumber, formatSeconds, formatShort } from '../data/format.ts'

/** Who makes the attempts of a run on a cluster: load, throughput, last heartbeat. */
export function Workers({ workers }: { workers: readonly WorkerRow[] }) {
  if (workers.length === 0) return null
  const here = workers.filter(({ isGone }) => !isGone)
  const running = here.reduce((sum, worker) => sum + worker.running, 0)
  const places = here.reduce((sum, worker) => sum + worker.concurrency, 0)
  return (
    <section class="workers" aria-label="Workers">
      <h2 class="section">
        Workers{' '}
        <small>
          {formatCount(here.length)} at the last look, {formatCount(running)} of{' '}
          {formatCount(places)} places taken
        </small>
      </h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>Worker</th>
              <th>Load</th>
              <th class="number">Attempts</th>
              <th class="number">per minute</th>
              <th class="number">Tokens per second</th>
              <th class="number">Last heartbeat</th>
              <th>State</th>
            </tr>
          </thead>
          <tbody>
            {workers.map(worker => (
              <Row key={worker.id} worker={worker} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function Row({ worker }: { worker: WorkerRow }) {
  const { running, concurrency } = worker
  return (
    <tr class={worker.isGone ? 'muted' : undefined}>
      <td>{worker.name}</td>
      <td>
        <meter min={0} max={Math.max(1, concurrency)} value={running} aria-label="Load" /> {running}{' '}
        of {concurrency}
      </td>
      <td class="number">{formatCount(worker.done)}</td>
      <td class="number">{formatNumber(worker.perMinute)}</td>
      <td class="number">{formatShort(worker.tokensPerSecond)}</td>
      <td class="number">
        <time dateTime={worker.time} title={worker.time}>
          {formatSeconds(worker.silent)} before
        </time>
      </td>
      <td>{stateOf(worker)}</td>
    </tr>
  )
}

function stateOf({ isGone, isLeaving, refusal, refused }: WorkerRow): string {
  if (isGone) return 'gone'
  if (refusal !== undefined) return `does not take part: ${refusal}`
  const late = refused === 0 ? '' : `, ${formatCount(refused)} came too late`
  return `${isLeaving ? 'leaves' : 'works'}${late}`
}
