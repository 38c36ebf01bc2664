import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import '../../offers.ts'
import { openByteRenderer, script } from '../../../test/rolling.ts'
import type { Environment } from '../../base/core/environment.ts'
import { type RollOptions, roll } from '../../index.ts'
import { openEnvironmentNamed } from '../../run/settings/open-environment.ts'

const agent = resolve('test/harnesses/acp-agent.mjs')

interface Prompted {
  readonly prompt: string
  readonly answer: string
}

interface Asked extends Partial<Omit<RollOptions, 'policy'>> {
  /** Items of the harness besides its command. */
  readonly items?: string
  /** How many tasks of its own, in place of the prompt. */
  readonly tasks?: number
}

/** Rolls one attempt of the test's own agent, which does what the first word of its prompt says. */
async function attempt(prompt: string, { items = 'seconds=20', tasks, ...options }: Asked = {}) {
  const renderer = await openByteRenderer()
  const name = `harness:acp,command=node ${agent} /outside,${items}`
  const environment = (await openEnvironmentNamed(name)) as Environment<Prompted>
  const policy = script(renderer, Array(4).fill('paris<|im_end|>'))
  const asked = { policy, model: renderer, group: 1, ...options }
  for await (const { members, unscored } of roll(
    environment,
    tasks ?? [{ prompt, answer: 'paris' }],
    asked,
  )) {
    return (members[0] ?? unscored[0])!
  }
  throw new Error('no group came')
}

const outcomeOf = async (...asked: Parameters<typeof attempt>) =>
  (await attempt(...asked)).trajectory.outcome

describe('a harness', () => {
  it('finds its address, its token and its model, and what it answered last is the answer', async () => {
    const { trajectory, ...rest } = await attempt('asks the capital of France')
    expect(rest).toMatchObject({ reward: { total: 1 } })
    expect(trajectory).toMatchObject({
      answer: 'paris',
      outcome: { kind: 'completed' },
      fidelity: { kind: 'exact' },
      messages: [{ role: 'user' }, { role: 'assistant', content: 'paris' }],
      report: { harness: { stop: 'end_turn' } },
    })
  })

  it('has files, permissions and terminals, all of them in its workspace alone', async () => {
    const { trajectory } = await attempt('methods of the protocol')
    const exit = { exitCode: 0, signal: null }
    expect(JSON.parse(trajectory.answer!)).toEqual([
      {},
      { content: 'two' },
      -32602,
      -32602,
      { outcome: { outcome: 'selected', optionId: 'yes' } },
      { terminalId: 'terminal-1' },
      exit,
      { output: 'one\ntwo\nthree', truncated: false, exitStatus: exit },
      { terminalId: 'terminal-2' },
      { exitCode: 126, signal: null },
      -32601,
    ])
  })

  it('sees no tests, no keys and no network, and its tests run once it has ended', async () => {
    const harbor = 'tasks=harbor:test/fixtures/task-folders/greet\\,installs=skipped'
    process.env.ESPALIER_POLICY_KEY = 'not for agents'
    const { trajectory, ...rest } = await attempt('', { items: harbor, tasks: 1 })
    expect(trajectory.report).toMatchObject({ reward: 0, harness: { answer: 'paris' } })
    expect(rest).toMatchObject({ reward: { total: 0 } })
    const looked = await attempt('looks around')
    expect(looked.trajectory.answer).toBe('[]')
    delete process.env.ESPALIER_POLICY_KEY
  })

  it.each([
    ['never', 'acp ended without asking the model'],
    ['talks', 'its answer has more than 4194304 characters'],
    ['lists', 'it has more than 1000000 values'],
    ['crashes', 'it ended with exit code 3 before it answered; it printed: out of luck'],
    ['forgets', 'a request came without a key than the token of its attempt'],
    [
      'wants',
      'it asked for the model "gpt-9"; the only one is espalier, which ESPALIER_MODEL says',
    ],
  ])('that %s fails the attempt with words, which is no score', async (act, words) => {
    expect(await outcomeOf(act)).toMatchObject({
      kind: 'failed',
      boundary: 'environment',
      message: expect.stringContaining(words),
    })
  })

  it('that hangs is ended when its time is up, and fails the attempt', async () => {
    expect(await outcomeOf('hangs', { items: 'seconds=2' })).toMatchObject({
      kind: 'failed',
      message: 'acp did not end within 2 s (0 requests were answered)',
    })
  })

  it('that leaves processes and floods leaves nothing behind', async () => {
    expect(await outcomeOf('forks')).toEqual({ kind: 'completed' })
    expect(await outcomeOf('floods')).toEqual({ kind: 'completed' })
    expect(readdirSync(tmpdir()).filter(name => name.startsWith('espalier-workspace-'))).toEqual([])
  })

  it('is refused where no command can be talked to, before anything is begun', async () => {
    const asked: string[] = []
    const about = { protocol: 1, name: 'old', isolation: { standing: [], missing: [] } }
    const server = createServer((request, response) => {
      asked.push(request.url!)
      response.end(JSON.stringify(about))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await expect(openEnvironmentNamed(`harness:codex,sandbox=remote:${url}`)).rejects.toThrow(
      `no harness runs in old at ${url}, whose commands cannot be talked to`,
    )
    expect(asked).toEqual(['/'])
    server.close()
  })

  it('that met the limit of its attempt is scored by what it did', async () => {
    const { trajectory, ...rest } = await attempt('asks much', { limits: { newTokens: 2 } })
    expect(trajectory.outcome).toMatchObject({ kind: 'truncated' })
    expect(rest).toMatchObject({ reward: { total: 0 } })
  })
})
