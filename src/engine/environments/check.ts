import { isDeepStrictEqual } from 'node:util'
import type { Renderer } from '@espalier/text'
import type { Call } from '../../base/core/call.ts'
import type { Environment, OpenCall, Task, Transition, World } from '../../base/core/environment.ts'
import { describeCause } from '../../base/core/failure.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { TookTooLong } from '../../base/core/process/deadline.ts'
import { recordWorld, replayWorld, withFork } from './fork.ts'
import { inBounds } from './in-bounds.ts'
import { NotSteppable, type Play, type Player, playWorld, scorePlay } from './play.ts'
import { mistakesFor, probe } from './probe.ts'
import { replyOf } from './reply.ts'

/** What one check found. */
export interface CheckResult {
  readonly name: string
  /** `measured`: it found a figure that people should look at. */
  readonly kind: 'passed' | 'failed' | 'skipped' | 'measured'
  /** What was found, in words. */
  readonly detail: string
  readonly values?: Readonly<Record<string, number>>
}

/** What an environment is checked with. */
export interface CheckOptions<Data> {
  /** Tasks as they are read, at least one. */
  readonly tasks: readonly { readonly id: string; readonly data: Data }[]
  /** @default 1 */
  readonly seed?: number
  /** Turns played per world. @default 8 */
  readonly turns?: number
  /** Measures openings in its tokens. */
  readonly renderer?: Renderer
  /** Shows how the tasks are done. */
  readonly demonstrate?: Player<Data>
  readonly signal?: AbortSignal
}

interface Checking<Data> {
  readonly environment: Environment<Data>
  readonly tasks: readonly Task<Data>[]
  readonly turns: number
  readonly seed: number
  readonly open: OpenCall
  readonly renderer: Renderer | undefined
  readonly demonstrate: Player<Data> | undefined
}

type Found = Omit<CheckResult, 'name'>
type Check = <Data>(checking: Checking<Data>) => Promise<Found | undefined>

/** The checks, in the order they run; one that gives nothing has passed. */
const checks: Readonly<Record<string, Check>> = {
  'reads its tasks and refuses what is none': checkTasks,
  'opens worlds and disposes of them': checkDisposal,
  'stops opening when it is told to': checkAbort,
  'gives the same answers to the same actions': checkDeterminism,
  'keeps worlds apart': checkIsolation,
  'forks worlds that equal their replay': checkFork,
  'answers mistakes with observations': checkMistakes,
  'tokens per opening': measureOpenings,
  'reward of doing nothing': checking => measureReward(checking, () => replyOf('')),
  'reward of always refusing': checking =>
    measureReward(checking, () => replyOf('I am sorry, I cannot help with that.')),
  'reward of demonstrations': measureDemonstrations,
}

/**
 * Puts an environment through everything that rolling, forking and scoring rely on. Never throws
 * for what it finds: `espalier check` prints the results, a test expects none of kind `failed`.
 */
export function checkEnvironment<Data>(
  environment: Environment<Data>,
  options: CheckOptions<Data>,
): Promise<readonly CheckResult[]> {
  return checkWithin(defaultSeconds, environment, options)
}

/** Seconds that one thing may take that a check asks of an environment, such as opening a world. */
export const defaultSeconds = 120

/** Checks an environment as `checkEnvironment` does, with other seconds. After something took longer, all else would too: it is not tried. */
export async function checkWithin<Data>(
  seconds: number,
  environment: Environment<Data>,
  options: CheckOptions<Data>,
): Promise<readonly CheckResult[]> {
  const { tasks, renderer, demonstrate } = options
  if (tasks.length === 0) throw new RangeError('An environment is checked with at least one task.')
  const { seed, turns, signal } = {
    seed: 1,
    turns: 8,
    signal: new AbortController().signal,
    ...options,
  }
  const lanes = makeLanes({ policy: 4, tools: 4, environment: 4, reward: 4 })
  const open: OpenCall = { seed, signal, lanes }
  // Outside, a task's id is any text.
  const named = tasks.map(({ id, data }) => ({ id: id as TaskId, data }))
  const checking = {
    environment: inBounds(environment, { seconds, signal }),
    tasks: named,
    turns,
    seed,
    open,
    renderer,
    demonstrate,
  }
  const results: CheckResult[] = []
  let hangs = false
  for (const [name, check] of Object.entries(checks)) {
    if (hangs) {
      results.push({ name, kind: 'skipped', detail: 'not tried after something took too long.' })
      continue
    }
    try {
      const found = (await check(checking)) ?? { kind: 'passed', detail: '' }
      results.push({ name, ...found })
    } catch (cause) {
      signal.throwIfAborted()
      const first = beforeDisposal(cause)
      hangs = first instanceof TookTooLong
      if (first instanceof NotSteppable) {
        results.push({ name, kind: 'skipped', detail: first.message })
        continue
      }
      results.push({ name, kind: 'failed', detail: describeCause(first) })
    }
  }
  return results
}

/** What was thrown first, if disposing of a world threw as well. */
function beforeDisposal(cause: unknown): unknown {
  let first = cause
  while (first instanceof Error && 'suppressed' in first) first = first.suppressed
  return first
}

async function checkTasks<Data>({
  environment,
  tasks,
}: Checking<Data>): Promise<Found | undefined> {
  for (const { data } of tasks) environment.readTask(data)
  try {
    environment.readTask(undefined)
  } catch {
    return undefined
  }
  return { kind: 'failed', detail: 'It reads `undefined` as a task; readTask should refuse it.' }
}

async function checkDisposal<Data>({
  environment,
  tasks,
  open,
}: Checking<Data>): Promise<undefined> {
  for (const task of tasks) {
    const world = await environment.open(task, open)
    await world[Symbol.asyncDispose]()
    await world[Symbol.asyncDispose]()
  }
}

async function checkAbort<Data>({
  environment,
  tasks,
  open,
}: Checking<Data>): Promise<Found | undefined> {
  const signal = AbortSignal.abort(new Error('stopped before it began'))
  try {
    const world = await environment.open(tasks[0]!, { ...open, signal })
    await world[Symbol.asyncDispose]()
  } catch {
    return undefined
  }
  return { kind: 'failed', detail: 'It opened a world although its signal had aborted.' }
}

async function checkDeterminism<Data>(checking: Checking<Data>): Promise<undefined> {
  const { environment, tasks, open } = checking
  for (const task of tasks) {
    await using world = recordWorld(await environment.open(task, open))
    const play = await playProbe(world, task, checking)
    await using again = await replayWorld(environment, task, { ...open, record: world.record() })
    expectEqual('the report', play.report, await again.report?.())
  }
}

/** Steps two worlds in turn: what happens in one must not show in the other. */
async function checkIsolation<Data>(checking: Checking<Data>): Promise<undefined> {
  const { environment, tasks, open, turns, seed } = checking
  const task = tasks[0]!
  await using one = await environment.open(task, open)
  await using other = await environment.open(task, open)
  const player = probe(seed + 1)
  const messages = [...one.opening]
  for (let turn = 0; turn < turns; turn++) {
    const reply = (await player({ task, messages, tools: one.tools, turn }))!
    const call = { signal: open.signal, messages, turn }
    const first = await one.step(reply, call)
    const second = await other.step(reply, { ...call, replay: first })
    expectEqual(`turn ${turn} of two worlds side by side`, comparable(first), comparable(second))
    if (first.kind === 'end') return
  }
}

async function checkFork<Data>(checking: Checking<Data>): Promise<undefined> {
  const { tasks, turns, open } = checking
  const environment = withFork(checking.environment)
  for (const task of tasks) {
    await using world = await environment.open(task, open)
    const half = Math.ceil(turns / 2)
    const { report: _, ...unasked } = world
    const before = await playProbe(unasked, task, { ...checking, turns: half })
    if (before.transitions.at(-1)?.kind === 'end') continue
    const stood = await inFork(world, open, fork => fork.report?.())
    const ahead = await inFork(world, open, fork => playProbe(fork, task, checking))
    // The fork went on; the world it came from must still be where it was, and go the same way.
    const stands = await inFork(world, open, fork => fork.report?.())
    expectEqual('the report of the world after its fork went on', stood, stands)
    const behind = await playProbe(world, task, { ...checking, after: ahead })
    const [left, right] = [ahead, behind].map(play => play.transitions.map(comparable))
    expectEqual('what a fork and its world answer', left, right)
    expectEqual('the report of a fork and its world', ahead.report, behind.report)
  }
}

/** A report is the last that is asked of a world: what comes before its end is asked of a fork. */
async function inFork<Result>(
  world: World,
  call: Call,
  work: (fork: World) => Result | Promise<Result>,
): Promise<Result> {
  await using fork = await world.fork!(call)
  return await work(fork)
}

async function playProbe<Data>(
  world: World,
  task: Task<Data>,
  { seed, turns, open, after }: Pick<Checking<Data>, 'seed' | 'turns' | 'open'> & { after?: Play },
): Promise<Play> {
  const played: World = after
    ? {
        ...world,
        step: (action, call) => {
          const replay = after.transitions[call.turn]
          return world.step(action, replay ? { ...call, replay } : call)
        },
      }
    : world
  return await playWorld(played, task, { player: probe(seed), turns, signal: open.signal })
}

async function checkMistakes<Data>({
  environment,
  tasks,
  open,
}: Checking<Data>): Promise<Found | undefined> {
  if (environment.drivesItself) {
    return { kind: 'skipped', detail: 'An agent answers mistakes in its own way.' }
  }
  await using first = await environment.open(tasks[0]!, open)
  if (first.tools.length === 0) return { kind: 'skipped', detail: 'It offers no tools.' }
  for (const { problem, reply } of mistakesFor(first.tools)) {
    await using world = await environment.open(tasks[0]!, open)
    const messages = [...world.opening, reply.message]
    const { observed, calls } = await world.step(reply, { signal: open.signal, messages, turn: 0 })
    if (!observed?.length) throw new Error(`Nothing was said of a call that is wrong (${problem}).`)
    if (calls?.[0]?.problem) continue
    throw new Error(`A call that is wrong (${problem}) was not recorded as a problem.`)
  }
  return undefined
}

async function measureOpenings<Data>(checking: Checking<Data>): Promise<Found> {
  const { environment, tasks, open, renderer } = checking
  if (!renderer) return { kind: 'skipped', detail: 'which model? --model DIR counts them.' }
  const counts: number[] = []
  for (const task of tasks) {
    await using world = await environment.open(task, open)
    counts.push(renderer.render(world.opening, world.tools).length)
  }
  return measured(counts)
}

async function measureReward<Data>(
  { environment, tasks, open, turns }: Checking<Data>,
  player: Player<Data>,
): Promise<Found> {
  const totals: number[] = []
  for (const task of tasks) {
    const { total } = await scorePlay(environment, task, { ...open, player, turns })
    if (!Number.isFinite(total)) throw new Error(`The reward of task ${task.id} is ${total}.`)
    totals.push(total)
  }
  return measured(totals)
}

async function measureDemonstrations<Data>(checking: Checking<Data>): Promise<Found> {
  const { demonstrate } = checking
  if (!demonstrate)
    return { kind: 'skipped', detail: 'none were given (--demonstrations, `demonstrate`).' }
  const shown = await measureReward({ ...checking, turns: 1000 }, demonstrate)
  const nothing = await measureReward(checking, () => replyOf(''))
  if (shown.values!.mean! > nothing.values!.mean!) return shown
  return { ...shown, kind: 'failed', detail: `${shown.detail}; doing nothing: ${nothing.detail}` }
}

function measured(numbers: readonly number[]): Found {
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length
  const values = { least: Math.min(...numbers), mean, most: Math.max(...numbers) }
  const detail = `mean ${round(mean)}, from ${round(values.least)} to ${round(values.most)}`
  return { kind: 'measured', detail, values }
}

function round(value: number): string {
  return String(Number(value.toFixed(3)))
}

/** What must be the same when an action is repeated: everything but how long it took. */
function comparable({ calls, ...transition }: Transition): unknown {
  return { ...transition, calls: calls?.map(({ seconds: _, ...call }) => call) }
}

function expectEqual(what: string, left: unknown, right: unknown): void {
  if (isDeepStrictEqual(left, right)) return
  const [first, second] = [left, right].map(value => JSON.stringify(value) ?? 'nothing') as [
    string,
    string,
  ]
  let same = 0
  while (same < first.length && first[same] === second[same]) same++
  // A little of what is equal shows the place; answers can be long.
  const shown = (text: string): string => text.slice(Math.max(0, same - 100), same + 200)
  throw new Error(`There is a difference in ${what}: ${shown(first)} and then ${shown(second)}.`)
}
