// OpenEnv's real package as server and as client, against ours. Used by `npm run trainers`.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { TaskId } from '../../../src/base/core/ids.ts'
import { Host } from '../../../src/doors/hosting/host.ts'
import { serveHost } from '../../../src/doors/hosting/server.ts'
import { listOfMadeTasks, listOfTasks } from '../../../src/doors/hosting/task-list.ts'
import { keyValue } from '../../../src/engine/environments/built-in/key-value.ts'
import { checkEnvironment } from '../../../src/engine/environments/check.ts'
import { openOpenEnv } from '../../../src/worlds/openenv/openenv.ts'
import { shop } from '../../fixtures/shop.ts'
import { startServing } from '../../serving.ts'
import { playOpenEnv } from './play.ts'

/** One thing that holds, or does not. */
export interface Finding {
  readonly run: string
  readonly held?: string
  readonly absent?: string
  readonly failed?: string
}

const run = promisify(execFile)
const folder = new URL('.', import.meta.url).pathname
const { signal } = new AbortController()

/** Plays real servers, and lets real clients play ours. */
export async function* checkOpenEnv(python: string): AsyncGenerator<Finding> {
  for (const name of ['guess', 'shelf']) {
    yield await finding(`serves ${name}`, () => playReal(python, name))
  }
  yield await finding('as client', () => letRealPlay(python))
  const trl = await run(python, ['-c', 'import trl']).catch(() => undefined)
  if (trl) yield await finding('trains', () => letRealTrain(python))
  else
    yield { run: 'trains', absent: 'TRL is not in the Python of --openenv: pip install trl torch' }
}

async function finding(name: string, check: () => Promise<string>): Promise<Finding> {
  try {
    return { run: name, held: await check() }
  } catch (cause) {
    return { run: name, failed: String(cause).slice(-1500) }
  }
}

/** A server of the real package: our checks on its worlds, and a play with its reward. */
async function playReal(python: string, name: string): Promise<string> {
  await using server = await startServing({
    command: port => [python, '-B', `${folder}games.py`, name, String(port), '4'],
    path: '/health',
  })
  const environment = await openOpenEnv({ url: server.url })
  const tasks = environment.makeTasks!({ count: 3, seed: 1 })
  const results = await checkEnvironment(environment, { tasks })
  const failed = results.filter(({ kind }) => kind === 'failed')
  if (failed.length > 0) throw new Error(JSON.stringify(failed))
  const { report } = await playOpenEnv(environment, { signal })
  return `${results.length} checks of its worlds, a play: ${JSON.stringify(report)}`
}

/** A server of ours, played by the clients of the real package. */
async function letRealPlay(python: string): Promise<string> {
  const environment = keyValue() as never
  const tasks = listOfMadeTasks(environment, { count: 20, seed: 1 })
  const host = new Host({ environment, tasks, sessions: 3 })
  await using server = await serveHost(host, { port: 0 })
  const { stdout } = await run(python, ['-B', `${folder}client.py`, server.url])
  const found = JSON.parse(stdout) as Record<string, unknown>
  const tools = ['keys', 'get', 'put', 'remove', 'say']
  const expected = { tools, production: tools, wrong: 'tool_not_found' }
  const flags = { done: true, again: false, invalid: true, full: true }
  for (const [name, value] of Object.entries({ ...expected, ...flags })) {
    if (JSON.stringify(found[name]) === JSON.stringify(value)) continue
    throw new Error(`${name} is ${JSON.stringify(found[name])}, not ${JSON.stringify(value)}`)
  }
  if (typeof found.reward !== 'number') throw new Error('the last step had no reward')
  return 'generic and tool clients, sessions over HTTP; refusals, reward and capacity as theirs'
}

interface Trained {
  readonly steps: number
  readonly rewards: readonly number[]
  readonly spread: readonly number[]
  readonly losses: readonly number[]
  readonly moved: number
  readonly worlds: number
}

/** An environment in TypeScript, served by us and trained on by TRL through OpenEnv's client. */
async function letRealTrain(python: string): Promise<string> {
  const tasks = [1, 2, 3, 2].map((wanted, index) => ({
    id: `${index}` as TaskId,
    data: { stock: 5, wanted },
  }))
  const host = new Host({ environment: shop as never, tasks: listOfTasks(tasks), sessions: 8 })
  await using server = await serveHost(host, { port: 0 })
  const { stdout } = await run(python, ['-B', `${folder}train_trl.py`, server.url])
  const found = JSON.parse(stdout.trim().split('\n').at(-1)!) as Trained
  const { steps, rewards, spread, losses, moved, worlds } = found
  if (steps !== 3 || worlds !== 4) throw new Error(`${steps} steps in ${worlds} worlds`)
  // Some sold the right number of pears and some did not, or there is nothing to learn from.
  if (!spread.some(each => each > 0)) throw new Error(`all rewards are alike: ${rewards}`)
  if (!losses.every(Number.isFinite) || !(moved > 0)) throw new Error(JSON.stringify(found))
  const told = rewards.map(each => each.toFixed(2)).join(', ')
  return `TRL: ${steps} steps over ${worlds} sessions, rewards ${told}, weights moved by ${moved.toExponential(1)}`
}
