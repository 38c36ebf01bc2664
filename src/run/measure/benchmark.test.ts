import { expect, it } from 'vitest'
import { resolveSettings } from '../settings/config.ts'
import { withBenchmarkDefaults } from './benchmark.ts'

const resolved = async (flags: object) => withBenchmarkDefaults(await resolveSettings({ flags }))

it('tau-bench is evaluated at temperature 0 with 30 steps, as the original does', async () => {
  const { values, origins } = await resolved({ environment: 'tau:retail,root=x' })
  expect(values).toMatchObject({ temperature: 0, maxTurns: 30, maxRolloutTokens: 30 * 2048 })
  expect(origins.temperature).toBe('the benchmark')
})

it('what people say stays, and other environments keep their defaults', async () => {
  const said = await resolved({ environment: 'tau:airline,root=x', temperature: 1, maxTurns: 5 })
  expect(said.values).toMatchObject({ temperature: 1, maxTurns: 5 })
  const other = await resolved({ environment: 'desk' })
  expect(other.values).toMatchObject({ temperature: 1, maxTurns: 16 })
  const two = await resolved({ environment: 'tau2:retail,root=x' })
  expect(two.values).toMatchObject({ temperature: 0, maxTurns: 200 })
})
