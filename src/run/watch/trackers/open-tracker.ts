import { SettingError } from '../../../base/core/names/setting-error.ts'
import { keepSecret } from '../../../base/core/process/secrets.ts'
import type { Listen } from '../events.ts'
import { openTracker, type TrackedRun, type TrackerOptions } from './tracker.ts'

/** Variables that hold keys and addresses of trackers. */
type Variables = Readonly<Record<string, string | undefined>>

/** Opens what shows the curves of a run, by its name. */
export async function openNamedTracker(
  name: string,
  run: TrackedRun,
  options: TrackerOptions & { readonly variables: Variables },
): Promise<{ readonly listen: Listen } & AsyncDisposable> {
  const [kind, rest] = [name.replace(/:.*/s, ''), name.replace(/^[^:]*:?/, '')]
  if (kind === 'tensorboard') return (await import('./tensorboard.ts')).openTensorBoard(rest)
  const service =
    kind === 'mlflow' ? await openMlflow(rest, run, options) : await openWandb(rest, run, options)
  return openTracker(service, options)
}

async function openMlflow(
  address: string,
  run: TrackedRun,
  { variables }: { readonly variables: Variables },
) {
  const { mlflowTracker } = await import('./mlflow.ts')
  const url = new URL(address)
  const experiment = url.searchParams.get('experiment') ?? 'espalier'
  const {
    MLFLOW_TRACKING_TOKEN: token,
    MLFLOW_TRACKING_USERNAME: user,
    MLFLOW_TRACKING_PASSWORD: password,
  } = variables
  keepSecret(token)
  keepSecret(password)
  const basic =
    user && password ? `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` : undefined
  const authorization = token ? `Bearer ${token}` : basic
  url.search = ''
  const headers: Readonly<Record<string, string>> = authorization ? { authorization } : {}
  return mlflowTracker({ url: url.href, experiment, headers, now: Date.now }, run)
}

async function openWandb(
  place: string,
  run: TrackedRun,
  { variables }: { readonly variables: Variables },
) {
  const { wandbTracker } = await import('./wandb.ts')
  const {
    WANDB_API_KEY: key,
    WANDB_BASE_URL: url = 'https://api.wandb.ai',
    WANDB_PROJECT,
    WANDB_ENTITY,
  } = variables
  if (!key)
    throw new SettingError(
      '--track wandb: WANDB_API_KEY holds no key; https://wandb.ai/authorize gives one',
    )
  keepSecret(key)
  const [project = '', entity] = place.split('/').reverse()
  const base = url.replace(/\/$/, '')
  return wandbTracker(
    {
      url: base,
      page: base.replace('://api.', '://'),
      project: project || WANDB_PROJECT || 'espalier',
      entity: entity ?? WANDB_ENTITY,
      key,
      now: Date.now,
    },
    run,
  )
}
