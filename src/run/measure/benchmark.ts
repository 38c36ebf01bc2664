import type { ResolvedSettings } from '../settings/config.ts'
import { type Benchmark, offered } from '../settings/offered.ts'
import type { SettingName, Settings } from '../settings/settings.ts'

/** The benchmark that settings evaluate on, if their environment is one. */
export async function benchmarkOf({
  environment = '',
}: Pick<Settings, 'environment'>): Promise<Benchmark | undefined> {
  const [name = '', variant] = environment.split(':', 2)
  const { benchmarks } = offered()
  return variant !== undefined && Object.hasOwn(benchmarks, name)
    ? await benchmarks[name]!()
    : undefined
}

/**
 * Gives an evaluation on a benchmark the original's defaults: its steps, temperature 0, and no limit on
 * the tokens over all turns, which the originals do not have.
 */
export async function withBenchmarkDefaults(resolved: ResolvedSettings): Promise<ResolvedSettings> {
  const { values, origins } = resolved
  const { maxTurns } = (await benchmarkOf(values)) ?? {}
  if (maxTurns === undefined) return resolved
  const own: Partial<Settings> = {
    temperature: 0,
    maxTurns,
    maxRolloutTokens: maxTurns * values.maxNewTokens,
  }
  const changed = Object.entries(own).filter(([name]) => origins[name as SettingName] === 'default')
  const said = changed.map(([name]) => [name, 'the benchmark'])
  return {
    values: { ...values, ...Object.fromEntries(changed) },
    origins: { ...origins, ...Object.fromEntries(said) },
  }
}
