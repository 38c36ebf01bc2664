import type { Reply } from '@espalier/text'
import type { Call } from './call.ts'
import type { Environment, OpenCall, StepCall, Task, Transition, World } from './environment.ts'
import type { Policy, Sample, SampleRequest } from './policy.ts'

/** Samples that are about to be drawn; several if they continue one prompt. */
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

/** What a policy is asked besides samples. */
export interface Question<T> {
  readonly kind: 'score' | 'describe'
  /** The tree it belongs to; '' if it belongs to none. */
  readonly session: string
  readonly call: Call
  ask(): Promise<T>
}

/** What is put around a policy: how samples are drawn, and how its other questions are asked. */
export interface AroundPolicy {
  /** Takes over the drawing of samples; gives as many as there are seeds. */
  draw(draw: Draw): Promise<readonly Sample[]>
  /** Draws a single sample, with less around it: nearly all requests are for one. */
  drawOne?(request: SampleRequest, call: Call): Promise<Sample>
  question?<T>(question: Question<T>): Promise<T>
}

/** A policy with something around all that is asked of it. */
export function aroundPolicy(policy: Policy, around: AroundPolicy): Policy {
  const { sampleSeveral, score, describe, takeLogprobs } = policy
  const question = around.question ?? (({ ask }) => ask())
  const drawOne = async (request: SampleRequest, call: Call): Promise<Sample> => {
    const ask: Draw['ask'] = async ({ maxTokens, signal } = {}) => [
      await policy.sample(shortened(request, maxTokens), signal ? { signal } : call),
    ]
    const samples = await around.draw({ request, seeds: [request.seed], call, ask })
    return samples[0]!
  }
  return {
    ...policy,
    sample: around.drawOne ?? drawOne,
    ...(sampleSeveral && {
      sampleSeveral: (request, seeds, call) =>
        around.draw({
          request,
          seeds,
          call,
          ask: (change = {}) =>
            sampleSeveral.call(
              policy,
              shortened(request, change.maxTokens),
              change.seeds ?? seeds,
              change.signal ? { signal: change.signal } : call,
            ),
        }),
    }),
    ...(score && {
      score(ids, from, options, call) {
        const ask = () => score.call(policy, ids, from, options, call)
        return question({ kind: 'score', session: options.session ?? '', call, ask })
      },
    }),
    ...(describe && {
      describe: call =>
        question({ kind: 'describe', session: '', call, ask: () => describe.call(policy, call) }),
    }),
    ...(takeLogprobs && { takeLogprobs: found => takeLogprobs.call(policy, found) }),
    [Symbol.asyncDispose]: () => policy[Symbol.asyncDispose](),
  }
}

/** Puts the same around a policy once, however many attempts ask for it. */
export function aroundOnce(around: (policy: Policy) => Policy): (policy: Policy) => Policy {
  const known = new WeakMap<Policy, Policy>()
  return policy => {
    const made = known.get(policy) ?? around(policy)
    known.set(policy, made)
    return made
  }
}

/** Returns the same request if nothing changes: this runs for every sample, in every layer. */
function shortened(request: SampleRequest, maxTokens = request.maxTokens): SampleRequest {
  return maxTokens === request.maxTokens ? request : { ...request, maxTokens }
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

/** An environment with something around its worlds; what forks from them is left alone. */
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
