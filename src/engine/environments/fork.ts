import { isDeepStrictEqual } from 'node:util'
import { type Message, type Reply, textOf } from '@espalier/text'
import type { Call } from '../../base/core/call.ts'
import type {
  Environment,
  OpenCall,
  StepCall,
  Task,
  Transition,
  World,
} from '../../base/core/environment.ts'
import { Failure } from '../../base/core/failure.ts'
import type { Json, NonEmpty } from '../../base/core/ids.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import { isNonEmpty } from './world.ts'

/** One action and what the world answered. */
export interface RecordedStep {
  readonly action: Reply
  readonly transition: Transition
}

/** All that happened in a world: enough to open another one and bring it to the same place. */
export interface WorldRecord {
  readonly opening: NonEmpty<Message>
  /** Tokens that models behind the world used to open it. */
  readonly spent?: Json
  readonly steps: readonly RecordedStep[]
}

/** A world that keeps what happens in it. */
export interface RecordedWorld extends World {
  /** What happened so far; later steps do not change it. */
  record(): WorldRecord
  fork?(call: Call): Promise<RecordedWorld>
}

/** Keeps the actions and answers of a world, so that it can be forked by replay. */
export function recordWorld(world: World, before: readonly RecordedStep[] = []): RecordedWorld {
  const steps = [...before]
  const { opening, spent, tools, report, fork } = world
  const usage = spent === undefined ? {} : { spent }
  return {
    opening,
    ...usage,
    tools,
    async step(action, call) {
      const transition = await world.step(action, call)
      steps.push({ action, transition })
      return transition
    },
    record: () => ({ opening, ...usage, steps: [...steps] }),
    ...(report && { report: () => report.call(world) }),
    ...(fork && {
      async fork(call) {
        const past = [...steps]
        return recordWorld(await fork.call(world, call), past)
      },
    }),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

/**
 * Opens a world anew and repeats what is on record, comparing every answer: recorded answers of
 * users and of tools with outside effects are fed back, all else runs again. A difference is a
 * failure of the environment that names the turn; a world that cannot repeat itself gives no fork.
 * Opening and tools go through their lanes, so call this without holding a place in one.
 */
export async function replayWorld<Data>(
  environment: Environment<Data>,
  task: Task<Data>,
  { record, ...call }: OpenCall & { readonly record: WorldRecord },
): Promise<RecordedWorld> {
  const { steps, ...begun } = record
  const { opening } = begun
  const world = await call.lanes.environment.run(call, () =>
    environment.open(task, { ...call, replay: begun }),
  )
  try {
    compareMessages(opening, world.opening, 'its opening')
    const messages: Message[] = [...opening]
    for (const [turn, step] of steps.entries()) {
      messages.push(step.action.message)
      await replayStep(world, step, { signal: call.signal, messages, turn })
      messages.push(...(step.transition.observed ?? []))
    }
    return recordWorld(world, steps)
  } catch (cause) {
    await world[Symbol.asyncDispose]()
    throw cause
  }
}

async function replayStep(world: World, { action, transition }: RecordedStep, call: StepCall) {
  const again = await world.step(action, { ...call, replay: transition })
  const place = `turn ${call.turn}`
  compareMessages(transition.observed ?? [], again.observed ?? [], place)
  for (const key of ['kind', 'reward', 'anchor', 'limit'] as const) {
    const [then, now] = [Reflect.get(transition, key), Reflect.get(again, key)]
    if (then !== now) throw diverged(place, `its ${key}`, [String(then), String(now)])
  }
}

function compareMessages(then: readonly Message[], now: readonly Message[], place: string): void {
  if (then.length !== now.length) {
    throw diverged(place, 'the number of messages', [String(then.length), String(now.length)])
  }
  for (const [index, message] of then.entries()) {
    const other = now[index]!
    if (isDeepStrictEqual(message, other)) continue
    const texts = [textOf(message.content), textOf(other.content)] as const
    const differing = `message ${index} (${message.role})`
    if (texts[0] === texts[1])
      throw diverged(place, differing, [JSON.stringify(message), JSON.stringify(other)])
    throw diverged(place, differing, texts)
  }
}

function diverged(place: string, what: string, [then, now]: readonly [string, string]): Failure {
  let at = 0
  while (at < then.length && then[at] === now[at]) at++
  const from = Math.max(0, at - 20)
  const shown = [then, now].map(text => JSON.stringify(text.slice(from, at + 60)))
  const where = at > 0 ? ` from character ${at} on` : ''
  return new Failure('environment', {
    cause: new Error(
      `A replayed world went another way at ${place}: ${what} differs${where}: ${shown[0]} was ` +
        `recorded, ${shown[1]} came now. Its answers must depend on task, seed and actions only; ` +
        "tools that reach outside need effects: 'outside'.",
    ),
  })
}

/** Forks a recorded world: natively if it can, otherwise by replaying it into a fresh one. */
export async function forkWorld<Data>(
  world: RecordedWorld,
  { environment, task, ...call }: ForkWorldOptions<Data>,
): Promise<RecordedWorld> {
  if (world.fork) return await world.fork(call)
  return await replayWorld(environment, task, { ...call, record: world.record() })
}

/** What a fork by replay opens its world with: the same as the first time. */
export interface ForkWorldOptions<Data> extends OpenCall {
  readonly environment: Environment<Data>
  readonly task: Task<Data>
}

/** An environment whose worlds can all be forked: natively, or by verified replay. */
export function withFork<Data>(environment: Environment<Data>): Environment<Data> {
  return {
    ...environment,
    async open(task, call) {
      const world = recordWorld(await environment.open(task, call))
      return withReplayedForks(world, { ...call, environment, task })
    },
  }
}

function withReplayedForks<Data>(world: RecordedWorld, options: ForkWorldOptions<Data>): World {
  const { environment, task } = options
  const { report } = world
  let hasReported = false
  const replay = async (record: WorldRecord, { signal }: Call): Promise<World> =>
    withReplayedForks(await replayWorld(environment, task, { ...options, signal, record }), options)
  // A report may have left its traces, such as the tests of a task; whoever goes on must not find them.
  const fork = async (call: Call): Promise<World> =>
    hasReported
      ? await replay(world.record(), call)
      : withReplayedForks(await forkWorld(world, { ...options, ...call }), options)
  return {
    ...world,
    ...(report && {
      report() {
        hasReported = true
        return report()
      },
    }),
    fork,
    async forkAt(turns, call) {
      const record = world.record()
      if (turns === record.steps.length) return await fork(call)
      return await replay({ ...record, steps: record.steps.slice(0, turns) }, call)
    },
  }
}

/**
 * What happened in the first `turns` turns of a stored trajectory, for replaying it up to there.
 * `replyAt` gives a turn's reply as it was parsed, malformed calls included.
 */
export function recordOfTrajectory(
  trajectory: Pick<Trajectory, 'messages' | 'turns' | 'calls'>,
  { turns, replyAt }: { readonly turns: number; readonly replyAt: (turn: number) => Reply },
): WorldRecord {
  const bounds = trajectory.turns.map(turn => turn.messages)
  const between = (from: number, to: number | undefined, what: string): NonEmpty<Message> => {
    const messages = trajectory.messages.slice(from, to)
    if (to !== undefined && isNonEmpty(messages)) return messages
    throw new RangeError(`A trajectory of ${bounds.length} turns has no ${what}.`)
  }
  const steps = Array.from({ length: turns }, (_, turn): readonly RecordedStep[] => {
    const { reward, anchor } = trajectory.turns[turn] ?? {}
    const from = (bounds[turn] ?? 0) + 1
    const observed = between(from, bounds[turn + 1], `answer to turn ${turn} that it went on from`)
    const calls = trajectory.calls.filter(call => call.turn === turn)
    const step: RecordedStep = {
      action: replyAt(turn),
      transition: {
        kind: 'continue',
        observed,
        calls,
        ...(reward !== undefined && { reward }),
        ...(anchor !== undefined && { anchor }),
      },
    }
    return calls.some(({ isRecall }) => isRecall) ? withoutRecalls(step) : [step]
  }).flat()
  return { opening: between(0, bounds[0], 'opening'), steps }
}

/** A step as the world saw it: calls of the recall tool never reached it. */
function withoutRecalls({ action, transition }: RecordedStep): readonly RecordedStep[] {
  const { calls = [], observed = [] } = transition
  const recalled = new Set(calls.flatMap(({ id, isRecall }) => (isRecall ? [id] : [])))
  const rest = observed.filter(each => each.role !== 'tool' || !recalled.has(each.tool_call_id))
  if (recalled.size === calls.length || !isNonEmpty(rest)) return []
  const { tool_calls: toolCalls = [], ...message } = action.message
  const kept = toolCalls.filter(({ id }) => !recalled.has(id))
  return [
    {
      action: {
        message: { ...message, tool_calls: kept },
        calls: action.calls.filter(({ id }) => !recalled.has(id)),
      },
      transition: {
        ...transition,
        kind: 'continue',
        observed: rest,
        calls: calls.filter(({ id }) => !recalled.has(id)),
      },
    },
  ]
}
