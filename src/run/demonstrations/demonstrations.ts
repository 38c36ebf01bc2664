import { existsSync } from 'node:fs'
import type { Reply } from '@espalier/text'
import type { Environment, Task, World } from '../../base/core/environment.ts'
import { heldOutFilter } from '../../base/core/group.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { succeeds } from '../../base/math/attempts.ts'
import { isAgent } from '../../engine/capture/agent.ts'
import { playSeats } from '../../engine/capture/play-seats.ts'
import { inBounds } from '../../engine/environments/in-bounds.ts'
import {
  type Play,
  type Player,
  playScored,
  playWorld,
  type Situation,
} from '../../engine/environments/play.ts'
import { mistakesFor } from '../../engine/environments/probe.ts'
import { replyOf, type ScriptedCall } from '../../engine/environments/reply.ts'
import { openNamed } from '../settings/open-named.ts'
import { loadUserPart } from '../settings/user-part.ts'
import { readManifest } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import type { Conversation } from './conversation.ts'
import { type Offering, readConversations } from './read-conversations.ts'

/**
 * Shows how a task is done: the next words, call or calls in a situation, or undefined when it is
 * done.
 */
export type Show<Data = unknown> = (
  situation: Situation<Data>,
) => Shown | undefined | Promise<Shown | undefined>

/** One turn as somebody shows it. */
export type Shown = string | ScriptedCall | readonly ScriptedCall[] | Reply

/** A demonstrator as a player of worlds. */
export function toPlayer<Data>(show: Show<Data>): Player<Data> {
  return async situation => {
    const shown = await show(situation)
    if (shown === undefined) return undefined
    if (typeof shown === 'string') return replyOf(shown)
    if (Array.isArray(shown)) return replyOf('', ...(shown as readonly ScriptedCall[]))
    if (typeof shown !== 'object' || shown === null) {
      throw new TypeError(
        `show gave ${JSON.stringify(shown)}: it gives words, a call, a list of calls or a reply, and undefined at the end`,
      )
    }
    if ('message' in shown) return shown
    return replyOf('', shown as ScriptedCall)
  }
}

/** Seconds that whatever is asked of a shown world may take. */
const worldSeconds = 600

/** Opens a world whose steps, report and end are left when their time is over, or teaching is stopped. */
function openWithin<Data>(
  environment: Environment<Data>,
  task: Task<Data>,
  signal: AbortSignal,
): Promise<World> {
  const bounded = inBounds(environment, { seconds: worldSeconds, signal })
  return bounded.open(task, { signal, seed: 0, lanes })
}

const lanes = makeLanes({ policy: 1, tools: 16, environment: 1, reward: 1 })

/** Plays every task as `show` says; the conversations are what a model learns from. */
export async function demonstrate<Data>(
  environment: Environment<Data>,
  tasks: Iterable<Task<Data>>,
  options: { readonly show: Show<Data>; readonly turns: number; readonly signal: AbortSignal },
): Promise<readonly Conversation[]> {
  const { show, turns, signal } = options
  const player = toPlayer(show)
  const conversations: Conversation[] = []
  for (const task of tasks) {
    if (isAgent(environment)) {
      const within = AbortSignal.any([signal, AbortSignal.timeout(1000 * worldSeconds)])
      const said = await playSeats(environment, task, { player, turns, signal: within })
      const named = environment.seats ? {} : { task: task.id }
      conversations.push(...said.map(each => ({ ...each, ...named })))
      continue
    }
    await using world = await openWithin(environment, task, signal)
    const play = await playWorld(world, task, { player, turns, signal })
    conversations.push({ messages: play.messages, tools: world.tools, task: task.id })
  }
  return conversations
}

/** Demonstrations that are scored, to find out how many are right. */
const scoredAtMost = 32

/**
 * The share of the first demonstrations that earn a reward of 1; undefined if nothing is shown by a
 * function, or what is shown cannot be stepped or scored.
 */
export async function shareSolved(
  named: string,
  { environment, tasks, signal }: Opening,
): Promise<number | undefined> {
  if (!isShow(named) || !environment) return undefined
  const some = tasks.slice(0, scoredAtMost)
  const options = { show: await readShow(named), turns: shownTurns, signal, successAt: 1 }
  try {
    return (await demonstrateSolved(environment, some, options)).length / some.length
  } catch {
    return undefined
  }
}

/** Plays every task as `show` says, and gives the conversations that earn at least this reward. */
async function demonstrateSolved<Data>(
  environment: Environment<Data>,
  tasks: readonly Task<Data>[],
  options: Parameters<typeof demonstrate<Data>>[2] & { readonly successAt: number },
): Promise<readonly Conversation[]> {
  const { show, turns, signal, successAt } = options
  const bounded = inBounds(environment, { seconds: worldSeconds, signal })
  const player = toPlayer(show)
  const solved: Conversation[] = []
  for (const task of tasks) {
    const call = { player, turns, signal, seed: 0, lanes }
    const { play, tools, reward } = await playScored(bounded, task, call)
    if (!succeeds(reward.total, successAt)) continue
    solved.push({ messages: play.messages, tools, task: task.id })
  }
  return solved
}

/** An environment's answers to mistakes, so that a model has seen these words before it makes some. */
export async function mistakenWords<Data>(
  environment: Environment<Data>,
  task: Task<Data>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const texts: string[] = []
  const open = (): Promise<World> => openWithin(environment, task, signal)
  await using probed = await open()
  for (const { reply } of mistakesFor(probed.tools)) {
    await using world = await open()
    const playing = playWorld(world, task, { player: () => reply, turns: 1, signal })
    const play: Play | undefined = await playing.catch((error: unknown) => {
      // Some frameworks throw at a call of a tool that does not exist, and some agents cannot be stepped.
      if (isAgent(environment)) return undefined
      throw error
    })
    if (!play) continue
    for (const message of play.messages.slice(world.opening.length + 1)) {
      if (typeof message.content === 'string') texts.push(message.content)
    }
  }
  return texts
}

/** What demonstrations are opened for. */
export interface Opening {
  readonly environment: Environment | undefined
  /** Tasks that a function shows, or that conversations may name. */
  readonly tasks: readonly Task[]
  readonly signal: AbortSignal
  /** The reward from which on a trajectory of a run shows how it is done. @default 1 */
  readonly successAt?: number
  /** Whether what a function shows is kept only if it earns that reward too. @default false */
  readonly isSolvedOnly?: boolean
}

/** Opens demonstrations by name: a file, a run, or `./file.ts#export`, a function that shows each turn. */
export async function openDemonstrations(
  named: string,
  { environment, tasks, signal, successAt = 1, isSolvedOnly = false }: Opening,
): Promise<readonly Conversation[]> {
  // A path with `./` is not always the user's code: it may be a run or a file of conversations.
  if (!isShow(named)) {
    if (isSolvedOnly && existsSync(named) && !existsSync(`${named}/run.json`)) {
      throw new SettingError(`--solved: ${named} holds conversations, which nobody can score again`)
    }
    return await openNamed(`--demonstrations ${named}`, () =>
      readDemonstrations(named, { environment, tasks, successAt }),
    )
  }
  const show = await readShow(named)
  const wanted = !environment ? '--environment NAME to show it in' : '--tasks FILE to demonstrate'
  if (!environment || tasks.length === 0) throw new SettingError(`${named} needs ${wanted}`)
  const options = { show, turns: shownTurns, signal, successAt }
  if (!isSolvedOnly) return await demonstrate(environment, tasks, options)
  const solved = await demonstrateSolved(environment, tasks, options)
  if (solved.length > 0) return solved
  throw new SettingError(
    `--solved: none of ${tasks.length} demonstrations earns a reward of ${successAt}`,
  )
}

/** Turns of a demonstration at most. */
const shownTurns = 32

/** Whether demonstrations are those of a function, which shows as many tasks as there are. */
export const isShow = (named = ''): boolean => /\.[cm]?[jt]s(?:#|$)/.test(named)

/** Opens `./file.ts#export`, a function that shows each turn. */
export async function readShow(named: string): Promise<Show> {
  const show = await loadUserPart(named)
  if (typeof show === 'function') return show as Show
  throw new SettingError(`${named} is not a function`)
}

/** Reads demonstrations: a run's solved trajectories, or a file of conversations. */
export async function readDemonstrations(
  path: string,
  { successAt, ...offering }: Offering & { readonly successAt: number },
): Promise<readonly Conversation[]> {
  if (!existsSync(path)) throw new SettingError(`no file or run ${path} with demonstrations`)
  if (existsSync(`${path}/run.json`)) return await readSolved(path, successAt)
  return await readConversations(path, offering)
}

async function readSolved(run: string, successAt: number): Promise<readonly Conversation[]> {
  await readManifest(run)
  await using reader = await openRunReader(run)
  const found: Conversation[] = []
  for await (const { group } of reader.groups()) {
    for (const { tree, trajectory, reward, dropped } of group.members) {
      if (!succeeds(reward.total, successAt) || dropped?.filter === heldOutFilter) continue
      found.push({ messages: trajectory.messages, tools: tree.tools, task: tree.task })
    }
  }
  if (found.length > 0) return found
  throw new Error(`${run} has no trajectory with a reward of at least ${successAt} to learn from`)
}
