// One side of `overhead`, in a process of its own as a user's run is: side.ts NAME URL. It warms up, says that it is
// ready, and answers every order with its figures.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Agent } from 'undici'
import { openPolicy, type Policy, roll } from '../../dist/index.js'
import { openRenderer } from '../../dist/tokens.js'
import { openAgent, recordRequests, type Sent, sendRollouts } from '../bare-client.ts'
import { answerOf, lookUp, model, questionOf, turns, turnsSoFar } from './world.ts'

/** What one side did at one concurrency. */
export interface Figures {
  readonly turnsPerSecond: number
  readonly cpuMicrosecondsPerTurn: number
}

/** What a side is told to do. */
export interface Order {
  readonly concurrency: number
  readonly rollouts: number
  /** Rollouts before those that are measured, in the same run: until then it is not yet full. */
  readonly leadIn: number
}

/** The names of the sides: into a run folder in groups of the usual size, or one attempt per task; in memory; no engine. */

export type SideName = 'kept' | 'alone' | 'inMemory' | 'bare'

/**
 * Rollouts before anything is measured, in several runs: V8 compiles most functions in the first and in the next ones
 * those again that it had compiled for the only run it knew.
 */
const warmUp = { order: { concurrency: 64, rollouts: 1600, leadIn: 0 }, runs: 4 }
/** Attempts per task: what `roll()` makes by default, since an advantage needs others to compare with. */
const usualGroup = 8

const renderer = await openRenderer(model)
const question = questionOf(renderer)

/** How this side rolls. */
interface Rolling {
  readonly policy: Policy
  readonly order: Order
  readonly group: number
  readonly out?: string
}

async function measureRoll({ policy, order, group, out }: Rolling): Promise<Figures> {
  const { concurrency, leadIn } = order
  const rollouts = order.rollouts + leadIn
  const tasks = Array.from({ length: rollouts / group }, (_, index) => ({
    id: index,
    question: `${index}: ${question}`,
  }))
  const options = { policy, model: renderer, group, concurrency, limits: { turns } }
  let measure = leadIn === 0 ? startMeasure(turnsSoFar()) : undefined
  let taken = 0
  let figures: Figures | undefined
  for await (const { members, unscored } of roll(lookUp, tasks, {
    ...options,
    ...(out !== undefined && { out }),
  })) {
    if (unscored[0]) throw new Error(JSON.stringify(unscored[0].outcome))
    for (const { trajectory } of members) taken += trajectory.turns.length
    if (taken >= leadIn * turns) measure ??= startMeasure(turnsSoFar())
    // Stop at the last group: closing the folder and writing the report are not part of turns.
    if (taken === rollouts * turns) figures = measure?.(turnsSoFar())
  }
  if (!figures) throw new Error(`${taken} turns of ${rollouts * turns} came out`)
  return figures
}

async function inFolder(work: (out: string) => Promise<Figures>): Promise<Figures> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-run-'))
  try {
    return await work(join(folder, 'run'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What the engine asks the server in one rollout, turn by turn. */
async function requestsOfRollout(): Promise<readonly Sent[]> {
  const order = { concurrency: 1, rollouts: 1, leadIn: 0 }
  const sent = await recordRequests(answerOf(renderer), async url => {
    await using policy = await openPolicy(`sglang:${url}`)
    await measureRoll({ policy, order, group: 1 })
  })
  return sent.filter(({ path }) => path === '/generate')
}

async function measureBare(
  url: string,
  { order, ...run }: { readonly order: Order; agent: Agent; sent: readonly Sent[] },
): Promise<Figures> {
  const { concurrency, rollouts, leadIn } = order
  await sendRollouts(url, { ...run, concurrency, rollouts: leadIn })
  const measure = startMeasure(0)
  await sendRollouts(url, { ...run, concurrency, rollouts })
  return measure(rollouts * turns)
}

/** Begins to measure; called with the turns by then, the result gives what has been done since. */
function startMeasure(before: number): (turns: number) => Figures {
  const cpu = process.cpuUsage()
  const started = performance.now()
  return after => {
    const used = process.cpuUsage(cpu)
    return {
      turnsPerSecond: ((after - before) / (performance.now() - started)) * 1000,
      cpuMicrosecondsPerTurn: (used.user + used.system) / (after - before),
    }
  }
}

/** What carries orders out. */
async function openSide(name: SideName, url: string): Promise<(order: Order) => Promise<Figures>> {
  if (name === 'bare') {
    const sent = await requestsOfRollout()
    return async order => {
      const agent = openAgent(order.concurrency)
      const figures = await measureBare(url, { order, agent, sent })
      await agent.close()
      return figures
    }
  }
  const policy = await openPolicy(`sglang:${url}`)
  const group = name === 'alone' ? 1 : usualGroup
  const rolling = { policy, group }
  return name === 'inMemory'
    ? order => measureRoll({ ...rolling, order })
    : order => inFolder(out => measureRoll({ ...rolling, order, out }))
}

if (process.send) {
  const [name, url] = process.argv.slice(2) as [SideName, string]
  const side = await openSide(name, url)
  for (let run = 0; run < warmUp.runs; run++) await side(warmUp.order)
  process.on('message', async (order: Order) => process.send?.(await side(order)))
  process.on('disconnect', () => process.exit(0))
  process.send('ready')
}
