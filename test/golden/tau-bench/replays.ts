import type { PythonValue } from '@espalier/text/python'
import { dumps } from '@espalier/text/python'
import type { TauDomain } from '../../../src/worlds/tau/domain.ts'
import { rewardToPython, toInfo } from '../../../src/worlds/tau/results.ts'
import type { TauReward } from '../../../src/worlds/tau/reward.ts'
import { RESPOND, STOP, type TauAction, type TauTask } from '../../../src/worlds/tau/task.ts'
import { makeTauWorld, type TauWorld } from '../../../src/worlds/tau/world.ts'
import {
  action,
  differ,
  firstOf,
  lengthOf,
  type Problem,
  sha256,
  type TauRow,
  type TauSource,
  taskOf,
} from './source.ts'

/** What one step of an environment with the scripted user gave. */
export interface Stepped {
  readonly observation: string
  readonly source: string
  readonly reward?: TauReward
}

/** The user of the golden runs: stops when told to, agrees otherwise. */
export function scriptedAnswer(content: PythonValue): string {
  return typeof content === 'string' && content.includes('[STOP]') ? STOP : 'ok'
}

/** Steps a world as the original steps its environment, the scripted user included. */
export function stepWithUser(world: TauWorld, taken: TauAction): Stepped {
  const step = world.step(taken)
  const isWords = step.kind === 'respond'
  const observation = isWords ? scriptedAnswer(step.content) : step.observation
  const done = isWords ? observation.includes(STOP) : step.done
  const stepped = { observation, source: isWords ? 'user' : taken.name }
  return done ? { ...stepped, reward: world.calculateReward() } : stepped
}

const asJson = (value: PythonValue): unknown => JSON.parse(dumps(value))

const say = (content: string): TauAction => ({
  name: RESPOND,
  kwargs: new Map([['content', content]]),
})

interface Place {
  readonly source: TauSource
  readonly domain: string | undefined
  readonly split: string | undefined
}

export async function checkGroundTruth(row: TauRow, place: Place): Promise<Problem> {
  const domain = await place.source.domain(place.domain ?? '')
  const task = taskOf(domain, place.split ?? '', row.task)
  const before = dumps(task.actions.map(({ kwargs }) => kwargs))
  const problems = [checkReplay(row, domain, task), checkVariants(row, domain, task)]
  const after = dumps(task.actions.map(({ kwargs }) => kwargs))
  return firstOf(...problems, differ('task_mutated', row.task_mutated, before !== after))
}

function checkReplay(row: TauRow, domain: TauDomain, task: TauTask): Problem {
  const world = makeTauWorld(domain, task)
  const problems: Problem[] = []
  let hash = world.hash()
  for (const [index, step] of row.steps.entries()) {
    if (step.skipped) continue
    const { observation } = stepWithUser(world, action(step.name, step.kwargs))
    hash = step.hash ?? hash
    problems.push(
      checkObservation(`step ${index}`, step, observation),
      differ(`hash of step ${index}`, hash, world.hash()),
    )
  }
  problems.push(differ('final hash', row.final_hash, world.hash()))
  const last = stepWithUser(world, say(row.say))
  const info = toInfo({ task, source: last.source, userCost: 0, reward: last.reward })
  info.delete('task')
  return firstOf(
    ...problems,
    differ('obs', row.obs, last.observation),
    differ('done', row.done, last.reward !== undefined),
    differ('reward', row.reward, last.reward?.reward),
    differ('info', row.info, asJson(info)),
    differ('actions', row.n_env_actions_after, world.actions.length),
    differ('hash after', row.hash_after_reward, world.hash()),
  )
}

function checkVariants(row: TauRow, domain: TauDomain, task: TauTask): Problem {
  const truth = (row.steps as TauRow[])
    .filter(step => !step.skipped)
    .map(step => action(step.name, step.kwargs))
  const problems = Object.entries<TauRow>(row.variants).map(([name, wanted]) => {
    const actions = variantActions(name, truth, { task, dropped: wanted.dropped })
    if (actions === undefined) return undefined
    const problem = checkVariant(wanted, makeTauWorld(domain, task), actions)
    return problem && `variant ${name}: ${problem}`
  })
  return firstOf(...problems)
}

function variantActions(
  name: string,
  truth: readonly TauAction[],
  { task, dropped }: { readonly task: TauTask; readonly dropped: number },
): readonly TauAction[] | undefined {
  const stop = say('All done. [STOP]')
  const { outputs } = task
  switch (name) {
    case 'noop':
      return [stop]
    case 'transfer':
      return [action('transfer_to_human_agents', '{"summary": "s"}')]
    case 'drop_last_mutation':
      return [...truth.filter((_, index) => index !== dropped), stop]
    case 'reversed':
      return [...truth.toReversed(), stop]
    case 'gt_no_output':
      return [...truth, stop]
    case 'gt_upper':
      return [...truth, say(`${outputs.join(' | ').toUpperCase()} [STOP]`)]
    case 'noop_output':
      return [say(outputs.slice(0, -1).join(' | ')), say(`${outputs.at(-1)}[STOP]`)]
    default:
      return undefined
  }
}

function checkVariant(wanted: TauRow, world: TauWorld, actions: readonly TauAction[]): Problem {
  const steps = actions.map(each => stepWithUser(world, each))
  const reward = steps.at(-1)?.reward
  const info = reward && (asJson(rewardToPython(reward)) as TauRow).info
  return firstOf(
    differ('n_actions', wanted.n_actions, actions.length),
    differ('done', wanted.done, reward !== undefined),
    differ('reward', wanted.reward, reward?.reward),
    differ('reward_info', wanted.reward_info, info),
    differ('actions', wanted.n_env_actions_after, world.actions.length),
    differ('hash', wanted.hash_after, world.hash()),
  )
}

function checkObservation(name: string, wanted: TauRow, got: string): Problem {
  if (wanted.obs_sha256 === undefined) return differ(name, wanted.obs, got)
  return firstOf(
    differ(`${name} length`, wanted.obs_len, lengthOf(got)),
    differ(`${name} sha256`, wanted.obs_sha256, sha256(got)),
  )
}

/** Sessions of calls, state carried over within each; rows must come in order. */
export class FuzzSessions {
  readonly #source: TauSource
  readonly #domain: string
  #session: number | undefined
  #world: TauWorld | undefined
  #hash: string | undefined

  constructor(source: TauSource, domain: string | undefined) {
    this.#source = source
    this.#domain = domain ?? ''
  }

  async check(row: TauRow): Promise<Problem> {
    const domain = await this.#source.domain(this.#domain)
    if (row.s !== this.#session || this.#world === undefined) {
      this.#session = row.s
      this.#world = makeTauWorld(domain, taskOf(domain, 'test', row.task))
      this.#hash = this.#world.hash()
    }
    const world = this.#world
    const before = this.#hash
    const problem = this.#checkStep(row, world)
    this.#hash = world.hash()
    return firstOf(
      problem,
      differ('hash', row.hash, this.#hash),
      differ('changed', row.changed, this.#hash !== before),
    )
  }

  #checkStep(row: TauRow, world: TauWorld): Problem {
    let stepped: Stepped
    try {
      stepped = stepWithUser(world, action(row.name, row.kwargs))
    } catch (error) {
      const { name, message } = error as Error
      return differ('raised', row.raised, { type: name, msg: message })
    }
    if (row.raised) return differ('raised', row.raised, undefined)
    const { reward, observation } = stepped
    const info = reward && (asJson(rewardToPython(reward)) as TauRow).info
    return firstOf(
      checkObservation('obs', row, observation),
      differ('done', row.done ?? false, reward !== undefined),
      differ('reward', row.reward, reward?.reward),
      differ('reward_info', row.reward_info, info),
    )
  }
}
