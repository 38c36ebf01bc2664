import type { CurvePoint } from './curves.ts'
import { keep, readKept } from './kept-id.ts'
import { sendJson } from './post-json.ts'
import type { TrackedRun, TrackerService } from './tracker.ts'

/** What MLflow is asked with. */
export interface MlflowOptions {
  readonly url: string
  readonly experiment: string
  /** Headers that let in: from `MLFLOW_TRACKING_TOKEN`, or a name and a password. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** Most numbers and settings of one request, by MLflow's own limits. */
const most = { metrics: 1000, params: 100, length: 500 }

const ended = { finished: 'FINISHED', stopped: 'KILLED', failed: 'FAILED' } as const

/** Tells a run to MLflow over its REST interface. */
export function mlflowTracker(
  { url, experiment, headers, now }: MlflowOptions,
  run: TrackedRun,
): TrackerService {
  let id = ''
  const ask = (path: string, body: object): Promise<unknown> =>
    sendJson(`${url.replace(/\/$/, '')}/api/2.0/mlflow/${path}`, { method: 'POST', headers, body })
  const experimentId = async (): Promise<string> => {
    const named = `experiments/get-by-name?experiment_name=${encodeURIComponent(experiment)}`
    const found = await sendJson(`${url.replace(/\/$/, '')}/api/2.0/mlflow/${named}`, {
      method: 'GET',
      headers,
    }).catch((cause: Error) => {
      if (/RESOURCE_DOES_NOT_EXIST/.test(cause.message)) return undefined
      throw cause
    })
    if (found) return (found as { experiment: { experiment_id: string } }).experiment.experiment_id
    const made = await ask('experiments/create', { name: experiment })
    return (made as { experiment_id: string }).experiment_id
  }
  return {
    name: 'MLflow',
    async begin() {
      const experiment = await experimentId()
      id = (await readKept(run.folder, 'mlflow')) ?? ''
      if (id === '') {
        const made = await ask('runs/create', {
          experiment_id: experiment,
          run_name: run.name,
          start_time: now(),
        })
        id = (made as { run: { info: { run_id: string } } }).run.info.run_id
        await keep(run.folder, 'mlflow', id)
        await ask('runs/log-batch', { run_id: id, params: paramsOf(await run.settings()) })
      } else await ask('runs/update', { run_id: id, status: 'RUNNING' })
      return { page: `${url.replace(/\/$/, '')}/#/experiments/${experiment}/runs/${id}` }
    },
    async add(points) {
      const metrics = points.flatMap(point => metricsOf(point, now()))
      for (let at = 0; at < metrics.length; at += most.metrics)
        await ask('runs/log-batch', { run_id: id, metrics: metrics.slice(at, at + most.metrics) })
    },
    async end(status) {
      await ask('runs/update', { run_id: id, status: ended[status], end_time: now() })
    },
  }
}

function metricsOf({ step, values }: CurvePoint, timestamp: number): object[] {
  return Object.entries(values)
    .filter(([, value]) => Number.isFinite(value))
    .map(([key, value]) => ({ key: nameOf(key), value, timestamp, step }))
}

/** MLflow takes letters, digits, `_`, `-`, `.`, `/`, `:` and blanks in names. */
const nameOf = (name: string): string => name.replace(/[^\w\-./: ]/g, '_')

function paramsOf(settings: Readonly<Record<string, unknown>>): object[] {
  return Object.entries(settings)
    .slice(0, most.params)
    .map(([key, value]) => ({
      key: nameOf(key),
      value: (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, most.length),
    }))
}
