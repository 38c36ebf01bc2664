import type { Renderer } from '@espalier/text'
import type { Environment } from '../../base/core/environment.ts'
import { didYouMean } from '../../base/core/names/nearest.ts'
import { parsePartName } from '../../base/core/names/part-name.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Policy } from '../../base/core/policy.ts'
import { absences } from '../../base/core/process/absences.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import {
  functionSpeaker,
  type SayFunction,
  speakingPolicy,
} from '../../engine/policies/speaking-policy.ts'
import type { Seating, SeatPlayer } from '../../engine/rollout/attempt.ts'
import { findModelOf, openRenderer } from '../settings/model-source.ts'
import { openNamed } from '../settings/open-named.ts'
import { openPolicy } from '../settings/open-policy.ts'
import { readSpeaker } from '../settings/open-speaker.ts'
import { isUserPart, loadUserPart } from '../settings/user-part.ts'
import { isRun } from '../store/run-folder.ts'
import { pastPolicy } from './past-policy.ts'

/** Who plays a seat: a name as on the command line, a policy, a speaker, or a function. */
export type SeatChoice = string | Policy | Speaker | SayFunction

/** Seats and who plays them: `NAME=POLICY` as on the command line, or by name. */
export type SeatChoices = readonly string[] | Readonly<Record<string, SeatChoice>>

/** What opening seats needs. */
export interface SeatOptions {
  readonly environment: Pick<Environment, 'name' | 'seats'>
  /** The policy that learns, and its renderer. */
  readonly policy: Policy
  readonly renderer: Renderer
  readonly seed: number
  /** The run folder, if there is one. */
  readonly out?: string | undefined
}

/** Opened seats. Disposing of them closes what was opened for them. */
export interface OpenedSeats extends AsyncDisposable {
  /** Undefined if the policy plays all of them. */
  readonly seats: Seating | undefined
}

/** The name that means the policy which learns. */
const ownName = 'policy'

/** Opens the players of seats that the policy does not play. */
export async function openSeats(
  given: SeatChoices = [],
  options: SeatOptions,
): Promise<OpenedSeats> {
  const choices = readChoices(given)
  checkNames(choices, options.environment)
  const players = new Map<string, SeatPlayer>()
  const closing: Policy[] = []
  const close = async (): Promise<void> => {
    for (const policy of closing) await policy[Symbol.asyncDispose]()
  }
  try {
    for (const [seat, choice] of choices) {
      if (choice === ownName) continue
      const player = await makePlayer(seat, choice, options)
      players.set(seat, player)
      if (player.policy !== choice) closing.push(player.policy)
    }
  } catch (error) {
    await close()
    throw error
  }
  const { seats = [] } = options.environment
  if (players.size > 0 && players.size === seats.length) {
    await close()
    throw new SettingError(
      `--seat: all seats of ${options.environment.name} have other players, so that nobody learns; leave one to --policy`,
    )
  }
  return { seats: players.size > 0 ? players : undefined, [Symbol.asyncDispose]: close }
}

/** Who plays which seat, by the seat's name. */
export function readChoices(given: SeatChoices): ReadonlyMap<string, SeatChoice> {
  if (!isList(given)) return new Map(Object.entries(given))
  const choices = new Map<string, SeatChoice>()
  for (const text of given) {
    const equals = text.indexOf('=')
    const seat = text.slice(0, Math.max(0, equals)).trim()
    const name = text.slice(equals + 1).trim()
    if (seat === '' || name === '') {
      throw new SettingError(`--seat ${text}: write NAME=POLICY, such as seller=embedded:DIR`)
    }
    if (choices.has(seat)) throw new SettingError(`--seat ${text}: ${seat} is given twice`)
    choices.set(seat, name)
  }
  return choices
}

const isList = (given: SeatChoices): given is readonly string[] => Array.isArray(given)

function checkNames(
  choices: ReadonlyMap<string, SeatChoice>,
  { name, seats }: SeatOptions['environment'],
): void {
  for (const seat of choices.keys()) {
    if (seats?.includes(seat)) continue
    const known = seats ? `It has ${seats.join(', ')}.${didYouMean(seat, seats)}` : 'It names none.'
    throw new SettingError(`--seat ${seat}: ${name} has no such seat. ${known}`)
  }
}

async function makePlayer(
  seat: string,
  choice: SeatChoice,
  options: SeatOptions,
): Promise<SeatPlayer> {
  if (typeof choice !== 'string') return await toPlayer(seat, choice, options)
  const flag = `--seat ${seat}=${choice}`
  if (isUserPart(choice)) return await toPlayer(flag, await loadUserPart(choice), options)
  if (isPast(choice)) return makePast(flag, choice, options)
  const { renderer } = options
  const encode = (text: string): Int32Array =>
    renderer.encodeReply({ role: 'assistant', content: text }, [])
  const { uri, ...asking } = readSpeaker(choice)
  const policy = await openNamed(flag, () => openPolicy(uri, { encode, absences, ...asking }))
  return await withRenderer(policy, options)
}

/** A player without token ids uses the run's renderer; one with ids needs its own model's. */
async function withRenderer(policy: Policy, { renderer }: SeatOptions): Promise<SeatPlayer> {
  if (!policy.capabilities.ids) return { policy, renderer }
  const model = policy.describe ? await findModelOf(policy) : undefined
  return { policy, renderer: model === undefined ? renderer : await openRenderer(model) }
}

async function toPlayer(place: string, part: unknown, options: SeatOptions): Promise<SeatPlayer> {
  const { renderer } = options
  if (typeof part === 'function') {
    const speaker = functionSpeaker(part.name || place, part as SayFunction)
    return { policy: speakingPolicy(speaker), renderer }
  }
  if (typeof part === 'object' && part !== null) {
    if ('sample' in part) return await withRenderer(part as Policy, options)
    if ('say' in part) return { policy: speakingPolicy(part as Speaker), renderer }
  }
  throw new SettingError(
    `${place}: this can play no seat: it is neither a policy, nor a speaker, nor a function of messages that gives a text`,
  )
}

/** Whether a choice means the policy's own past: `past`, `past:RUN`, `past:last=N`. */
export function isPast(choice: SeatChoice): boolean {
  return typeof choice === 'string' && /^past(:|$)/.test(choice)
}

/** The default number of past checkpoints. */
const usualLast = 8

/** Reads `past`, `past:RUN` and `past:last=N`. */
function makePast(flag: string, text: string, options: SeatOptions): SeatPlayer {
  const { variant: run = options.out, options: given } = parsePartName(text)
  const last = Number(given.get('last') ?? usualLast)
  const unknown = [...given.keys()].find(key => key !== 'last')
  if (unknown !== undefined || !Number.isInteger(last) || last < 1) {
    throw new SettingError(`${flag}: write past, past:RUN or past:last=N with a whole number N`)
  }
  if (run === undefined) {
    throw new SettingError(
      `${flag}: the past lies in a run folder; name one with --out or past:RUN`,
    )
  }
  if (run !== options.out && !isRun(run)) throw new SettingError(`${flag}: ${run} is not a run`)
  const { inside } = options.policy
  if (!inside) {
    throw new SettingError(
      `${flag}: checkpoints of ${options.policy.name} are not opened here; serve one, and name its server`,
    )
  }
  const { policy: meanwhile, renderer, seed } = options
  return { policy: pastPolicy({ run, last, seed, meanwhile, open: inside.reopen }), renderer }
}
