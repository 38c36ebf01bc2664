import { expect, it, vi } from 'vitest'
import { dicePolicy, openByteRenderer } from '../../../test/rolling.ts'
import { calculator } from '../../engine/environments/built-in/calculator.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { Rollouts } from './rollouts.ts'
import { serveRollouts } from './rollouts-server.ts'
import { Worlds } from './rollouts-worlds.ts'

const renderer = await openByteRenderer()
const environment = calculator()
const tasks = [{ prompt: '1 + 1', answer: '2' }]

it('versions and pauses of one trainer are nothing to another', async () => {
  const policy = dicePolicy(renderer)
  await using rollouts = new Rollouts({
    parts: { environment, policy, renderer, estimate: makeEstimate('grpo'), group: 2 },
    openPolicy: async () => policy,
    findTask: async () => undefined,
  })
  await using worlds = new Worlds({ environment, reward: environment.reward })
  await using server = await serveRollouts({ rollouts, worlds }, { port: 0 })
  const post = async (path: string, body: object): Promise<unknown> => {
    const headers = { 'content-type': 'application/json' }
    const sent = { method: 'POST', headers, body: JSON.stringify(body) }
    return await (await fetch(`${server.url}/v1/${path}`, sent)).json()
  }
  const versionOf = async (id: string, more: object): Promise<unknown> => {
    await post('rollouts', { id, tasks, format: 'trl', ...more })
    await vi.waitFor(() => expect(rollouts.status(id).finished).toBe(1), 30_000)
    return (await rollouts.take(id)).groups[0]!.rows[0]!.model_version
  }
  await post('weights', { version: 3, trainer: 'one' })
  await post('weights', { version: 40, trainer: 'other' })
  await post('weights', { version: 500 })
  const paused = { paused: true, seconds: 60, version: 40 }
  expect(await post('pause', { trainer: 'other', seconds: 60 })).toEqual(paused)
  expect(await versionOf('a', { trainer: 'one' })).toBe(3)
  expect(await versionOf('b', {})).toBe(500)
  const metrics = await (await fetch(`${server.url}/metrics`)).text()
  expect(metrics).toContain('espalier_policy_version{trainer="one"} 3')
  expect(metrics).toContain('espalier_rollouts_paused{trainer="other"} 1')
  expect(metrics).toContain('espalier_rollouts_paused 0')
  await post('resume', { trainer: 'other' })
  expect(await versionOf('c', { trainer: 'other', version: 41 })).toBe(41)
})
