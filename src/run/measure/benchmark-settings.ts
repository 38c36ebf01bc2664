import type { ResolvedSettings } from '../settings/config.ts'
import type { SettingName, Settings } from '../settings/settings.ts'
import { isTau } from './evaluate-tau.ts'
import { isTau2 } from './evaluate-tau2.ts'

/** Steps that tau-bench's own agents may take, and steps of both sides that end a conversation of tau2-bench. */
const steps = { tau: 30, tau2: 200 }

/**
 * Gives an evaluation on a benchmark the original's defaults: its steps, temperature 0, and no limit on
 * the tokens over all turns, which the originals do not have.
 */
export function withBenchmarkDefaults(resolved: ResolvedSettings): ResolvedSettings {
  const { values, origins } = resolved
  const turns = isTau(values) ? steps.tau : isTau2(values) ? steps.tau2 : undefined
  if (turns === undefined) return resolved
  const own: Partial<Settings> = {
    temperature: 0,
    maxTurns: turns,
    maxRolloutTokens: turns * values.maxNewTokens,
  }
  const changed = Object.entries(own).filter(([name]) => origins[name as SettingName] === 'default')
  const said = changed.map(([name]) => [name, 'the benchmark'])
  return {
    values: { ...values, ...Object.fromEntries(changed) },
    origins: { ...origins, ...Object.fromEntries(said) },
  }
}
