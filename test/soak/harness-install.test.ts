import { expect, it } from 'vitest'
import type { Environment } from '../../src/base/core/environment.ts'
import { roll } from '../../src/index.ts'
import { openEnvironmentNamed } from '../../src/run/settings/open-environment.ts'
import { scriptFor } from '../harnesses/script.ts'
import { openByteRenderer } from '../rolling.ts'
import { serveE2b } from '../servers/vendors/e2b.ts'

/** One attempt in a machine that has no such program. */
async function attempt(name: string, more = '') {
  await using server = await serveE2b()
  process.env.ESPALIER_TEST_E2B = 'key'
  const sandbox = `e2b:api=${server.url}\\,machines=${server.url}\\,key-variable=ESPALIER_TEST_E2B`
  const named = `harness:${name},sandbox=${sandbox}${more}`
  await using environment = (await openEnvironmentNamed(named)) as Environment<object> &
    AsyncDisposable
  const renderer = await openByteRenderer()
  const limits = { turns: 64, tokens: 1_000_000, context: 2_000_000, newTokens: 4096 }
  const policy = scriptFor(name, renderer)
  const asked = { policy, model: renderer, group: 1, limits }
  const tasks = [{ prompt: 'Write the greeting.', answer: 'The greeting is written.' }]
  for await (const { members, unscored } of roll(environment, tasks, asked))
    return (members[0] ?? unscored[0])!.trajectory
  throw new Error('no group came')
}

it('a sandbox without the program and without a network says what helps', async () => {
  const { outcome } = await attempt('codex')
  expect(outcome).toMatchObject({
    kind: 'failed',
    boundary: 'environment',
    message: expect.stringMatching(/has no codex, and nothing can be installed.*network=outside/),
  })
})

it.runIf(process.env.ESPALIER_SOAK).each(['codex', 'opencode', 'claude-code', 'mini-swe-agent'])(
  '%s is installed in a sandbox that has a network, and does its work there',
  async name => {
    const { outcome, answer } = await attempt(name, ',network=outside')
    expect(outcome).toEqual({ kind: 'completed' })
    expect(answer).toMatch(/^(The greeting is written\.|done\n)$/)
  },
  600_000,
)
