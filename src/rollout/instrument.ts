import type { Call } from '../core/call.ts'
import type {
  Environment,
  OpenCall,
  StepCall,
  Task,
  Transition,
  World,
} from '../core/environment.ts'
import type { Reply } from '../core/message.ts'
import type { Policy, Sample, SampleRequest } from '../core/policy.ts'
import type { Attempt, RolloutContext } from './attempt.ts'

/** Puts something of the run around what one attempt is rolled with: its policy, its environment. */
export type Instrument = (context: RolloutContext, attempt: Attempt) => RolloutContext

/** Samples that are about to be drawn; several where they continue one prompt. */
export interface Draw {
  readonly request: SampleRequest
  /** One per sample. */
  readonly seeds: readonly number[]
  readonly call: Call
  /** Asks the policy for these samples, or for some of them, or for shorter ones. */
  ask(change?: {
    readonly seeds?: readonly number[]
    readonly maxTokens?: number
    readonly signal?: AbortSignal
  }): Promise<readonly Sample[]>
}

/** Takes over the drawing of samples; gives as many as there are seeds. */
export type AroundDraw = (draw: Draw) => Promise<readonly Sample[]>

/** The same policy with `around` in the way of all that is sampled from it. */
export function aroundSamples(policy: Policy, around: AroundDraw): Policy {
  const { sampleSeveral } = policy
  return {
    ...policy,
    async sample(request, call) {
      const ask: Draw['ask'] = async ({ maxTokens = request.maxTokens, signal } = {}) => [
        await policy.sample({ ...request, maxTokens }, signal ? { signal } : call),
      ]
      const samples = await around({ request, seeds: [request.seed], call, ask })
      return samples[0]!
    },
    ...(sampleSeveral && {
      sampleSeveral: (request, seeds, call) =>
        around({
          request,
          seeds,
          call,
          ask: (change = {}) =>
            sampleSeveral(
              { ...request, maxTokens: change.maxTokens ?? request.maxTokens },
              change.seeds ?? seeds,
              change.signal ? { signal: change.signal } : call,
            ),
        }),
    }),
  }
}

/** What is put around a world: how it opens, and how it is stepped. */
export interface AroundWorld {
  open?(task: Task, call: OpenCall, open: (call: OpenCall) => Promise<World>): Promise<World>
  step?(
    action: Reply,
    call: StepCall,
    step: (call: StepCall) => Promise<Transition>,
  ): Promise<Transition>
}

/** The same environment with something around its worlds; what forks from them is left alone. */
export function aroundWorlds(environment: Environment, around: AroundWorld): Environment {
  return {
    ...environment,
    async open(task, call) {
      const open = (changed: OpenCall): Promise<World> => environment.open(task, changed)
      const world = around.open ? await around.open(task, call, open) : await open(call)
      return around.step ? aroundSteps(world, around.step) : world
    },
  }
}

function aroundSteps(world: World, around: NonNullable<AroundWorld['step']>): World {
  const { report, fork, forkAt } = world
  return {
    opening: world.opening,
    tools: world.tools,
    step: (action, call) => around(action, call, changed => world.step(action, changed)),
    ...(report && { report: () => report.call(world) }),
    ...(fork && { fork: call => fork.call(world, call) }),
    ...(forkAt && { forkAt: (turns, call) => forkAt.call(world, turns, call) }),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}
