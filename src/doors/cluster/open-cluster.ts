import { SettingError } from '../../base/core/names/setting-error.ts'
import { keepSecretsIn, withoutSecretsInJson } from '../../base/core/process/secrets.ts'
import type { OpenElsewhere } from '../../run/run/roll-options.ts'
import type { Settings } from '../../run/settings/settings.ts'
import { readAddress } from './address.ts'

/** What a cluster needs to know of the run that it rolls. */
export interface ClusterOptions {
  /** The settings that workers open the run by: every part of it is named in them. */
  readonly config: Settings
  /** The run folder; without one nothing can be resumed. */
  readonly out?: string
  readonly tell?: (line: string) => void
}

/** Settings that only the coordinator uses; they are not sent to workers. */
const ownSettings = new Set([
  'cluster',
  'out',
  'sinks',
  'notify',
  'traces',
  'metricsPort',
  'metrics',
  'tasks',
  'shots',
  'demonstrations',
  'heldOut',
  'results',
  'filters',
  'budget',
  'segments',
])

/**
 * Has the attempts of a run made by the workers of a cluster: pass it as `elsewhere`.
 *
 * @example
 * roll('calculator', 64, { policy, elsewhere: openCluster('postgres://…', { config }) })
 */
export function openCluster(address: string, options: ClusterOptions): OpenElsewhere {
  const where = readAddress(address)
  const config = sentConfig(options.config)
  return async parts => {
    const { enterCluster } = await import('./enter-cluster.ts')
    const { filters = [], segments } = options.config
    const entering = { ...options, filters, where, config }
    return await enterCluster(parts, { ...entering, ...(segments !== undefined && { segments }) })
  }
}

/** The settings that workers get; secrets stay in each machine's environment variables. */
function sentConfig(values: Settings): Readonly<Record<string, unknown>> {
  if (values.record !== undefined) {
    throw new SettingError(
      '--record: samples are drawn by the workers of a cluster, and not recorded there. Record in one process',
    )
  }
  const sent = Object.entries(values).filter(
    ([name, value]) => value !== undefined && !ownSettings.has(name),
  )
  const text = JSON.stringify(Object.fromEntries(sent))
  keepSecretsIn(values)
  if (withoutSecretsInJson(text) !== text) {
    throw new SettingError(
      '--cluster: a setting holds a secret, and settings are kept in the database. Put it into a variable of the workers, such as --key-variable names',
    )
  }
  return JSON.parse(text) as Record<string, unknown>
}
