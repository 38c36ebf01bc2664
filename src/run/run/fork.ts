import { unlessStopped } from '../../base/core/call.ts'
import type { Environment, Task } from '../../base/core/environment.ts'
import type { Group, Scored } from '../../base/core/group.ts'
import type { GroupId } from '../../base/core/ids.ts'
import { commandLine } from '../../base/core/names/program-name.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import { idsTo, lengthTo, type Place, pathTo, placeAt, type Tree } from '../../base/core/tree.ts'
import { rewardInterval } from '../../base/math/bounds/clustered.ts'
import type { Interval } from '../../base/math/intervals.ts'
import { mean } from '../../base/math/statistics.ts'
import {
  forkWorld,
  type RecordedWorld,
  recordOfTrajectory,
  replayWorld,
} from '../../engine/environments/fork.ts'
import type { Attempt, RolloutContext } from '../../engine/rollout/attempt.ts'
import { walkToEnd, withTime } from '../../engine/rollout/chain.ts'
import { endWalk, outcomeOf } from '../../engine/rollout/end-walk.ts'
import { imageKeeper } from '../../engine/rollout/images/admit.ts'
import {
  continueWalks,
  type Reopening,
  reopenWalk,
  walkBeside,
} from '../../engine/rollout/reopen.ts'
import { lastTurns, stepToEnd } from '../../engine/rollout/step.ts'
import type { Strategy } from '../../engine/rollout/strategy.ts'
import { emptyWalk, seedFor, show, type Walk } from '../../engine/rollout/walk.ts'
import { disposeOf } from '../../engine/rollout/world/dispose.ts'
import { findById } from '../store/find-id.ts'
import { openRunReader, type StoredGroup } from '../store/store.ts'
import { openRun } from './open-run-folder.ts'
import { reopenCondensing } from './reopen-condensing.ts'
import { openRollPipeline, type RollParts } from './roll-groups.ts'

/** Where a stored trajectory is taken up: before a turn, or after so many tokens of its last path. */
export type ForkAt =
  | { readonly kind: 'turn'; readonly turn: number }
  | { readonly kind: 'token'; readonly token: number }

/** What is forked and how often it is continued. */
export interface ForkOptions {
  /** The trajectory's id, or the end of it if no other ends so. */
  readonly id: string
  readonly at: ForkAt
  readonly samples: number
  /** Tokens put behind that place before the policy goes on. */
  readonly edit?: Int32Array
  /** Turns that a step shows, if the trajectory is continued step by step. */
  readonly stepHistory?: number
  readonly out: string
  readonly config: Readonly<Record<string, unknown>>
}

/** What continuing a trajectory gave. */
export interface Forked {
  readonly turn: number
  /** Tokens that were given: the path to the place. */
  readonly given: number
  readonly group: Group
  readonly value: Value | undefined
  /** The reward that the stored trajectory got, if it got one. */
  readonly before: number | undefined
}

/** The value of a state under the policy: the mean reward of the continuations, with its 95 % interval. */
export interface Value extends Interval {
  readonly mean: number
  readonly samples: number
}

/** Reads a place as a command line writes it: `3` is before turn 3, `t512` after 512 tokens. */
export function parseForkAt(text: string): ForkAt {
  const isToken = text.startsWith('t')
  const digits = isToken ? text.slice(1) : text
  if (!/^\d{1,9}$/.test(digits)) {
    throw new Error(`no place "${text}": a turn is a number from 0 on, a token is t and its number`)
  }
  const number = Number(digits)
  return isToken ? { kind: 'token', token: number } : { kind: 'turn', turn: number }
}

/** Reopens a stored trajectory and continues it several times into a run of its own. */
export async function forkTrajectory(
  run: string,
  parts: RollParts,
  options: ForkOptions,
): Promise<Forked> {
  const found = await findTrajectory(run, options.id)
  const { tree, trajectory } = found.member
  if (tree.seat !== undefined) {
    throw new SettingError(
      `${trajectory.id} is what seat ${tree.seat} did: the others at the table cannot be brought back to that place`,
    )
  }
  const reopening: Reopening = {
    tree,
    trajectory,
    ...resolvePlace(tree, trajectory, options.at),
    ...(options.edit && { edit: options.edit }),
  }
  const strategy = forkStrategy(reopening, parts.environment, options)
  const { out, config } = options
  await using opened = await openRun(parts, { out, kind: 'fork', config, unfinished: 'restart' })
  const rolling = { ...parts, ...opened.parts, strategy, group: 1 }
  const group = await rollOne(rolling, found.stored.task).catch((error: unknown) => {
    opened.fail(error)
    throw error
  })
  await opened.finish()
  return {
    turn: reopening.turn,
    given: lengthTo(tree, reopening.place) + (options.edit?.length ?? 0),
    group,
    value: worthOf(group),
    before: 'reward' in found.member ? found.member.reward.total : undefined,
  }
}

/** The one group of a run. */
async function rollOne(parts: RollParts, task: Task): Promise<Group> {
  await using pipeline = openRollPipeline(parts)
  pipeline.submit({ id: task.id as string as GroupId, task, order: 0 })
  return await pipeline.next()
}

interface Found {
  readonly stored: StoredGroup
  readonly member: Scored | { readonly tree: Tree; readonly trajectory: Trajectory }
}

/** Finds a trajectory by its id, or by the end of an id that only one has: `7/0/0` may be `desk/train/7/0/0`. */
async function findTrajectory(run: string, id: string): Promise<Found> {
  await using reader = await openRunReader(run)
  const found = await findById(reader, id)
  if (found.kind === 'trajectory') return found
  if (found.kind === 'several') {
    const { groups } = found
    throw new SettingError(
      `"${id}" may be of ${groups.length} groups: ${groups.slice(0, 5).join(', ')}${groups.length > 5 ? ', …' : ''}`,
    )
  }
  throw new SettingError(
    `no trajectory "${id}" in ${run}: \`${commandLine('show', run)}\` lists groups, and with the id of one its trajectories`,
  )
}

/** The turn that is sampled anew, and its place; an impossible one is refused with the possible ones. */
function resolvePlace(
  tree: Tree,
  trajectory: Trajectory,
  at: ForkAt,
): { readonly turn: number; readonly place: Place } {
  const { turns, id } = trajectory
  if (at.kind === 'turn') {
    const turn = turns[at.turn]
    if (turn) return { turn: at.turn, place: tree.nodes[turn.from]!.parent }
    throw new SettingError(
      `${id} has ${turns.length} turns: it can be forked at 0 to ${turns.length - 1}, not at ${at.turn}`,
    )
  }
  const onPath = new Set(pathTo(tree, trajectory.end).map(({ node }) => node))
  const spans = turns
    .map(({ from, end }, turn) => ({
      turn,
      isHere: onPath.has(from),
      start: tree.nodes[from]!.start,
      end: lengthTo(tree, end),
    }))
    .filter(({ isHere }) => isHere)
  const inside = spans.find(({ start, end }) => start <= at.token && at.token < end)
  if (inside) return { turn: inside.turn, place: placeAt(tree, trajectory.end, at.token) }
  const places = spans.map(({ turn, start, end }) => `turn ${turn} has t${start} to t${end - 1}`)
  throw new SettingError(
    `t${at.token} of ${id} is not inside a turn that the policy sampled: ${places.join(', ')}`,
  )
}

function forkStrategy(
  reopening: Reopening,
  environment: Environment,
  options: ForkOptions,
): Strategy {
  return async (context, attempt) => {
    const timed = withTime(attempt, context)
    const worlds: RecordedWorld[] = []
    try {
      const walks = await beginWalks(context, timed.attempt, {
        reopening,
        environment,
        worlds,
        options,
      })
      const { stepHistory } = options
      const toEnd = (walk: Walk): Promise<Outcome> =>
        stepHistory === undefined ? walkToEnd(walk) : stepToEnd(walk, stepHistory)
      return await continueWalks(walks, toEnd)
    } catch (error) {
      const walk = emptyWalk(context, attempt)
      await endWalk(walk, outcomeOf(error, timed.attempt.signal))
      return walk.tree
    } finally {
      timed.clear()
      await Promise.allSettled(worlds.map(disposeOf))
    }
  }
}

/** The walks of all continuations, each in a world that was brought to the place by replay. */
async function beginWalks(
  context: RolloutContext,
  attempt: Attempt,
  forking: {
    readonly reopening: Reopening
    readonly environment: Environment
    readonly worlds: RecordedWorld[]
    readonly options: ForkOptions
  },
): Promise<readonly Walk[]> {
  const { reopening, environment, worlds, options } = forking
  const { tree, trajectory, turn } = reopening
  const { lanes, clock, renderer } = context
  const { task, signal } = attempt
  // Use the seed of the stored attempt, so that the world opens as it did then.
  const seed = seedFor({ ...attempt, seed: tree.seed, member: tree.member }, 'world')
  const keepImage = imageKeeper(context, attempt)
  const opening = { signal, seed, lanes, clock, ...(keepImage && { keepImage }) }
  const replyAt = (index: number) => {
    const { from, end } = trajectory.turns[index]!
    const ids = idsTo(tree, end).subarray(tree.nodes[from]!.start)
    return renderer.parse(ids, tree.tools, index)
  }
  const record = recordOfTrajectory(trajectory, { turns: turn, replyAt })
  // A world that opens after the attempt was stopped must be disposed of here.
  const opened = (world: Promise<RecordedWorld>): Promise<RecordedWorld> =>
    unlessStopped(attempt, world, late => void disposeOf(late).catch(() => {}))
  const first = await opened(replayWorld(environment, task, { ...opening, record }))
  worlds.push(first)
  const condensing =
    context.condense && (await reopenCondensing(context.condense, reopening, attempt))
  const walk = reopenWalk(context, attempt, {
    world: first,
    of: reopening,
    branch: 'fork.0',
    ...(condensing && { condensing }),
  })
  if (options.stepHistory !== undefined && turn > 0) {
    show(walk, lastTurns(walk, options.stepHistory))
  }
  const walks = [walk]
  for (let sample = 1; sample < options.samples; sample++) {
    const world = await opened(forkWorld(first, { ...opening, environment, task }))
    worlds.push(world)
    walks.push(walkBeside(walk, world, `fork.${sample}`))
  }
  return walks
}

function worthOf({ members }: Group): Value | undefined {
  const rewards = members.map(({ reward }) => reward.total)
  if (rewards.length === 0) return undefined
  return { mean: mean(rewards), samples: rewards.length, ...rewardInterval([rewards]) }
}
