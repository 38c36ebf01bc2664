// Our driver against SkyRL's own Tinker server (JAX, on a CPU): node --import tsx … PYTHON
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { textOf } from '@espalier/text'
import { z } from 'zod'
import { type Group, reasonsUnscored } from '../../../src/base/core/group.ts'
import { environment } from '../../../src/engine/environments/environment.ts'
import {
  openTinkerSession,
  type TinkerSession,
} from '../../../src/engine/policies/tinker/session.ts'
import { makeEstimate } from '../../../src/engine/weigh/estimate.ts'
import { openTinkerTrainer } from '../../../src/learn/learn/tinker/trainer.ts'
import { groupRows } from '../../../src/run/rows/row-record.ts'
import { rollGroups } from '../../../src/run/run/roll-groups.ts'
import { openByteRenderer } from '../../rolling.ts'

const steps = 14
/** Adam moves every number of an adapter by about this much; its product is then taken four times (alpha 32, rank 8). */
const learningRate = 0.02
const folder = mkdtempSync(join(tmpdir(), 'espalier-skyrl-'))
const port = await freePort()
const script = ['test/python/trainers/skyrl_server.py', folder, String(port)]
const child = spawn(process.argv[2] ?? 'python3', script, { stdio: ['ignore', 'ignore', 'pipe'] })
let said = ''
child.stderr.on('data', piece => {
  said = `${said}${piece}`.slice(-2000)
})
const call = { signal: AbortSignal.timeout(1_800_000) }
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
  await compareScores(session, await roll(session, { seed: 0, group: 8 }))
  await stepOnce(session)
  for (const seed of [1, 2]) await learn(session, seed)
}

/** One small step on a batch, which is then scored again: what paid has to have become likelier. */
async function stepOnce(session: TinkerSession): Promise<void> {
  const options = { learningRate: 0.001, loss: 'importance-sampling', rank: 8 }
  await using trainer = await openTinkerTrainer(session, options)
  const groups = await roll(session, { seed: 7, group: 8 })
  const rows = groups.flatMap(group => groupRows(group)).map(({ row }) => row)
  await trainer.step(groups, call)
  const gains = await Promise.all(
    rows.map(async row => {
      const from = row.mask.indexOf(1)
      const { logprobs } = await session.policy.score!(row.ids, from, { temperature: 1 }, call)
      const trained = [...logprobs].filter((_, at) => row.mask[from + at] === 1)
      const before = row.logprobs.filter((_, at) => row.mask[at] === 1)
      return { advantage: row.advantages[from]!, gain: mean(trained) - mean([...before]) }
    }),
  )
  const better = mean(gains.filter(each => each.advantage > 0).map(each => each.gain))
  const worse = mean(gains.filter(each => each.advantage < 0).map(each => each.gain))
  const told = `by ${better.toFixed(4)}, of the others by ${worse.toFixed(4)}`
  tell(better > 0 && worse < 0, `a step changes the log-probability of what paid ${told}`)
}

/** The share of letters before and after some steps, each over the same 64 seeds. */
async function learn(session: TinkerSession, seed: number): Promise<void> {
  const options = { learningRate, loss: 'importance-sampling', rank: 8, seed }
  await using trainer = await openTinkerTrainer(session, options)
  const before = meanReward(await roll(session, { seed: 1000, group: 32 }))
  const curve: number[] = []
  let furthest = 0
  for (let step = 0; step < steps; step++) {
    const groups = await roll(session, { seed: seed * 100 + step, group: 8 })
    curve.push(meanReward(groups))
    const { metrics } = await trainer.step(groups, call)
    furthest = Math.max(furthest, metrics.largestDifference ?? 0)
  }
  const after = meanReward(await roll(session, { seed: 1000, group: 32 }))
  const told = furthest.toExponential(1)
  tell(furthest < 1e-4, `sampler and trainer are at most ${told} apart, over ${steps} steps`)
  const rise = `${before.toFixed(3)} to ${after.toFixed(3)}`
  const steady = curve.map(each => each.toFixed(2)).join(' ')
  tell(after > before + 0.2, `seed ${seed}: the reward rises from ${rise} (${steady})`)
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
async function roll(
  session: TinkerSession,
  { seed, group }: { readonly seed: number; readonly group: number },
): Promise<readonly Group[]> {
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
  for await (const rolled of rollGroups([{ prompt: 'a' }, { prompt: 'b' }], {
    environment: letters,
    policy: session.policy,
    renderer: await openByteRenderer(),
    estimate: makeEstimate('grpo'),
    group,
    limits: { turns: 1, newTokens: 12 },
    seed,
  }))
    groups.push(rolled)
  const lost = groups.flatMap(reasonsUnscored)
  if (lost.length > 0) throw new Error(`${lost[0]!.count} attempts failed: ${lost[0]!.reason}`)
  return groups
}

function meanReward(groups: readonly Group[]): number {
  const rewards = groups.flatMap(({ members }) => members.map(({ reward }) => reward.total))
  return mean(rewards)
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
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
