// Our driver against SkyRL's own Tinker server (JAX, on a CPU): node --import tsx … PYTHON
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { Group } from '../../../src/core/group.ts'
import { textOf } from '../../../src/core/message.ts'
import { environment } from '../../../src/environments/environment.ts'
import { openTinkerTrainer } from '../../../src/learn/tinker/trainer.ts'
import { openTinkerSession, type TinkerSession } from '../../../src/policies/tinker/session.ts'
import { rollGroups } from '../../../src/run/roll-groups.ts'
import { groupRows } from '../../../src/sinks/row-record.ts'
import { openEstimate } from '../../../src/weigh/estimate.ts'
import { openByteRenderer } from '../../rolling.ts'

const steps = 12
const folder = mkdtempSync(join(tmpdir(), 'espalier-skyrl-'))
const port = await freePort()
const script = ['test/python/trainers/skyrl_server.py', folder, String(port)]
const child = spawn(process.argv[2] ?? 'python3', script, { stdio: ['ignore', 'ignore', 'pipe'] })
let said = ''
child.stderr.on('data', piece => {
  said = `${said}${piece}`.slice(-2000)
})
const call = { signal: AbortSignal.timeout(900_000) }
const tell = (holds: boolean, words: string): void =>
  console.log(`${holds ? 'ok   ' : 'FAIL '}${words}`)
try {
  await waitFor(`http://127.0.0.1:${port}/api/v1/healthz`)
  await drive(`http://127.0.0.1:${port}`)
  console.log('all told')
} catch (error) {
  tell(false, `${(error as Error).message} ${said.slice(-300)}`)
  process.exitCode = 1
} finally {
  child.kill('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
}

async function drive(url: string): Promise<void> {
  await using session = await openTinkerSession(url)
  tell(session.kind.name === 'skyrl', `the server is found to be ${session.kind.name}`)
  await using trainer = await openTinkerTrainer(session, {
    learningRate: 0.02,
    loss: 'importance-sampling',
    rank: 8,
  })
  const rewards: number[] = []
  let furthest = 0
  for (let step = 0; step < steps; step++) {
    const groups = await roll(session, step)
    rewards.push(meanReward(groups))
    if (step === 0) await compareScores(session, groups)
    const { metrics } = await trainer.step(groups, call)
    furthest = Math.max(furthest, metrics.largestDifference ?? 0)
  }
  const told = furthest.toExponential(1)
  tell(furthest < 1e-4, `sampler and trainer are at most ${told} apart, over ${steps} steps`)
  const rise = rewards.slice(-3).reduce((sum, each) => sum + each, 0) / 3 - rewards[0]!
  tell(rise > 0.05, `the reward rises from ${rewards[0]!.toFixed(3)} by ${rise.toFixed(3)}`)
}

async function compareScores(session: TinkerSession, groups: readonly Group[]): Promise<void> {
  const { row } = groupRows(groups[0]!)[0]!
  const from = row.mask.indexOf(1)
  const { logprobs } = await session.policy.score!(row.ids, from, { temperature: 1 }, call)
  const apart = Math.max(
    ...logprobs.map((value, at) =>
      row.mask[from + at] === 1 ? Math.abs(value - row.logprobs[from + at]!) : 0,
    ),
  )
  tell(apart < 1e-4, `prompt_logprobs score what was sampled within ${apart.toExponential(1)}`)
}

/** Worth the share of letters in what was said. */
async function roll(session: TinkerSession, seed: number): Promise<readonly Group[]> {
  const letters = environment({
    name: 'letters',
    task: z.object({ prompt: z.string() }),
    open: ({ data }) => ({ opening: [{ role: 'user', content: data.prompt }] }),
    reward: {
      letters: ({ messages }) => {
        const said = textOf(messages.at(-1)!.content)
        return (said.match(/[a-z]/g)?.length ?? 0) / Math.max(1, said.length)
      },
    },
  })
  const groups: Group[] = []
  for await (const group of rollGroups([{ prompt: 'a' }, { prompt: 'b' }], {
    environment: letters,
    policy: session.policy,
    renderer: await openByteRenderer(),
    estimate: openEstimate('grpo'),
    group: 8,
    limits: { turns: 1, newTokens: 12 },
    seed,
  }))
    groups.push(group)
  return groups
}

function meanReward(groups: readonly Group[]): number {
  const rewards = groups.flatMap(({ members }) => members.map(({ reward }) => reward.total))
  return rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length
}

async function waitFor(url: string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error('the server ended before it was ready')
    const answer = await fetch(url).catch(() => undefined)
    if (answer?.ok) return
    await sleep(500, undefined, call)
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise(resolve => server.close(resolve))
  return port
}
