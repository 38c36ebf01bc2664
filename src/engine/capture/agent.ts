import type { Environment, MadeTask, MakeTasksOptions } from '../../base/core/environment.ts'
import type { Json, NonEmpty } from '../../base/core/ids.ts'
import type { RewardPart } from '../../base/core/reward.ts'
import type { StandardSchema } from '../../base/core/tool.ts'
import { environment } from '../environments/environment.ts'
import { rollChain } from '../rollout/chain.ts'
import type { Strategy } from '../rollout/strategy.ts'
import type { Hooks } from './hooks.ts'

/** What an agent's own function is given: its task, and the ways to ask the policy. */
export interface AgentCall<Data = unknown, Seat extends string = string> extends Hooks {
  /** The ways to ask as each seat, if the agent names seats; the others then refuse. */
  readonly seats: Readonly<Record<Seat, Hooks>>
  readonly task: Data
  /** The task's id. */
  readonly id: string
  /** A 31-bit number; the same whenever this attempt is made again. */
  readonly seed: number
  /** Aborts when the attempt has to stop. */
  readonly signal: AbortSignal
}

/** An agent's own function. */
export type AgentFunction<Data = unknown, Result = unknown, Seat extends string = string> = {
  run(call: AgentCall<Data, Seat>): Result | Promise<Result>
}['run']

/** Everything that makes an agent trainable; what rewards see is inferred from `task` and `run`. */
export interface AgentDefinition<Data, Result, Seat extends string = never> {
  readonly name: string
  /** Who asks, if several do: each has a tree, a reward and a group of its own. @default one */
  readonly seats?: NonEmpty<Seat>
  /** A zod or other Standard Schema of a task's data. */
  readonly task: StandardSchema<unknown, Data>
  /** The agent as it is: any framework, any control flow; what it returns is reported to rewards. */
  readonly run: AgentFunction<Data, Result, NoInfer<Seat>>
  /** The named parts of the reward. @default the number that `run` returns, or its `reward`; by seat if it has several */
  readonly reward?: Readonly<Record<string, RewardPart<NoInfer<Data>, NoInfer<Result>>>>
  makeTasks?(options: MakeTasksOptions): readonly MadeTask<NoInfer<Data>>[]
  readonly splits?: readonly string[]
}

/** An environment whose world is somebody's own function, which asks the policy when it likes. */
export interface AgentEnvironment<Data = unknown> extends Environment<Data> {
  readonly drivesItself: true
  readonly agent: AgentFunction<Data>
  /** It ends when its signal aborts, and is waited for: an attempt is over when all that it started is. */
  readonly endsItself?: true
}

/** What an agent returns that says itself what it answered last. */
export class AgentAnswer {
  readonly answer: string
  readonly report: unknown

  constructor(answer: string, report: unknown) {
    this.answer = answer
    this.report = report
  }
}

/** Makes an agent as it stands into an environment that can be rolled, trained and evaluated. */
export function agent<Data, Result, const Seat extends string = never>(
  definition: AgentDefinition<Data, Result, Seat>,
): AgentEnvironment<Data> {
  const { run, reward = returnedReward, seats, ...rest } = definition
  if (seats) checkSeats(definition.name, seats)
  if (typeof run !== 'function') {
    throw new TypeError(`Agent "${definition.name}" needs \`run\`, the function that is the agent.`)
  }
  const made = environment<Data, Json>({
    ...rest,
    reward: reward as Readonly<Record<string, RewardPart<Data, Json>>>,
    // Replaced below by `openAgentWorld`: an agent brings its own tools.
    open: () => ({ opening: [] }),
  })
  return {
    ...made,
    reward: whereReturned(made.reward),
    ...(seats && { seats }),
    drivesItself: true,
    agent: run,
    async open(task, call) {
      const { openAgentWorld } = await import('./agent-world.ts')
      return await openAgentWorld({ agent: run, ...(seats && { seats }) }, task, call)
    },
  }
}

/** Seat names become parts of ids and of flags, so their characters are limited. */
function checkSeats(name: string, seats: readonly string[]): void {
  const names = Array.isArray(seats) ? seats : []
  const areGood = names.every(seat => /^[A-Za-z][\w-]*$/.test(seat))
  if (!areGood || names.length === 0 || new Set(names).size < names.length) {
    throw new TypeError(
      `Agent "${name}" needs seats with different names of letters, digits, - and _, not ${JSON.stringify(seats)}.`,
    )
  }
}

/** An agent that a limit stopped before it returned is worth nothing: there is no result to score. */
function whereReturned<Data>(
  parts: Readonly<Record<string, RewardPart<Data, Json>>>,
): Readonly<Record<string, RewardPart<Data, Json>>> {
  return Object.fromEntries(
    Object.entries(parts).map(([name, part]) => {
      const { weight, score } = typeof part === 'function' ? { weight: 1, score: part } : part
      const guarded: typeof score = (input, call) =>
        input.outcome.kind === 'truncated' && input.report === undefined ? 0 : score(input, call)
      return [name, { weight, score: guarded }]
    }),
  )
}

/** Whether an environment is an agent, which drives its attempts itself. */
export function isAgent(environment: Environment): environment is AgentEnvironment {
  return environment.drivesItself === true && 'agent' in environment
}

/** How attempts of an environment are rolled if nothing else is said. */
export function usualStrategy(environment: Environment): Strategy {
  return isAgent(environment) ? rollAgentLate : rollChain
}

/** What answers agents in all their dialects is loaded with the first of them. */
const rollAgentLate: Strategy = async (context, attempt) => {
  const { rollAgent } = await import('./roll-agent.ts')
  return await rollAgent(context, attempt)
}

/** The reward of agents that return it themselves. */
const returnedReward: Readonly<Record<string, RewardPart>> = {
  returned: ({ report, seat }) => {
    const returned = isRecord(report) ? report.reward : report
    const value = isRecord(returned) ? returned[seat] : returned
    if (typeof value === 'number' || typeof value === 'boolean') return Number(value)
    if (seat !== '') {
      throw new TypeError(
        `the agent returned no reward for seat ${seat}: return { reward: { ${seat}: number, … } }, give agent({ reward }), or name one with --reward`,
      )
    }
    throw new TypeError(
      'the agent returned no reward: return a number or { reward: number }, give agent({ reward }), or name one with --reward',
    )
  },
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** Makes a bare function an agent: it takes any task data, and what it returns is the reward. */
export function plainAgent(name: string, run: AgentFunction): AgentEnvironment {
  return agent({ name, task: anything, run })
}

const anything: StandardSchema<unknown, unknown> = {
  '~standard': {
    version: 1,
    vendor: 'espalier',
    validate: value =>
      value === undefined ? { issues: [{ message: 'there is no task' }] } : { value },
  },
}
