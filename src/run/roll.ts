import type { Environment } from '../core/environment.ts'
import type { Group } from '../core/group.ts'
import type { Policy } from '../core/policy.ts'
import type { Renderer } from '../core/renderer.ts'
import { RunStoppedError } from '../core/stopped.ts'
import type { CondenseSettings } from '../rollout/attempt.ts'
import { openModelOf, openRenderer } from '../settings/model-source.ts'
import { openCondense } from '../settings/open-condense.ts'
import { openPolicy } from '../settings/open-policy.ts'
import { checkFirstTask, type TaskSource } from '../tasks/tasks.ts'
import { openEstimate } from '../weigh/estimate.ts'
import { rollIntoRun } from './open-run-folder.ts'
import { type RollParts, rollGroups } from './roll-groups.ts'

/** How groups are rolled. Only the policy has to be named. */
export interface RollOptions<Data = unknown>
  extends Omit<
    RollParts<Data>,
    | 'environment'
    | 'policy'
    | 'renderer'
    | 'estimate'
    | 'writer'
    | 'known'
    | 'finished'
    | 'unfinished'
    | 'spent'
  > {
  readonly policy: Policy | string | readonly string[]
  /** Tokenizer and chat template: a model folder, an id, or an opened renderer. @default what the server says it serves */
  readonly model?: string | Renderer
  /** How the members of a group are compared. @default 'grpo' */
  readonly advantage?: string
  /** How long contexts are condensed: a name as on the command line, or an opened condenser. @default not */
  readonly condense?: string | CondenseSettings
  /** A run folder to keep everything in. @default none */
  readonly out?: string
  /** Goes on with the run that `out` holds. @default false */
  readonly resumes?: boolean
  /** What the run folder says of itself. @default 'roll' */
  readonly kind?: string
}

/** Rolls a group of attempts for every task; groups come out as they are complete. */
export async function* roll<Data>(
  environment: Environment<Data>,
  tasks: TaskSource<Data>,
  options: RollOptions<Data>,
): AsyncGenerator<Group, void> {
  const { policy: named, model, advantage = 'grpo', out, resumes = false, ...more } = options
  const { kind = 'roll', condense: condenser, ...rest } = more
  const estimate = openEstimate(advantage)
  await checkFirstTask(environment, tasks)
  const isOpen = typeof named === 'object' && 'sample' in named
  const policy = isOpen ? named : await openPolicy(named)
  try {
    const renderer = typeof model === 'object' ? model : await rendererOf(model, policy)
    await using condense = await openCondensing(condenser, renderer)
    const parts: RollParts<Data> = {
      ...rest,
      environment,
      policy,
      renderer,
      estimate,
      more: { ...rest.more, ...condense.more },
    }
    if (out === undefined) yield* withinBudget(rollGroups(tasks, parts))
    else {
      const config = {
        environment: environment.name,
        policy: policy.name,
        advantage,
        seed: rest.seed ?? 0,
      }
      yield* rollIntoRun(tasks, parts, { out, kind, config, resumes })
    }
  } finally {
    if (!isOpen) await policy[Symbol.asyncDispose]()
  }
}

/** What is added to the parts of a run whose contexts are condensed. */
async function openCondensing(
  condenser: string | CondenseSettings | undefined,
  renderer: Renderer,
): Promise<{ readonly more: RollParts['more'] } & AsyncDisposable> {
  const isNamed = typeof condenser === 'string'
  const condense = isNamed ? await openCondense(condenser, renderer) : condenser
  return {
    more: condense ? { condense } : {},
    async [Symbol.asyncDispose]() {
      if (isNamed) await (condense as Partial<AsyncDisposable>)[Symbol.asyncDispose]?.()
    },
  }
}

async function rendererOf(model: string | undefined, policy: Policy): Promise<Renderer> {
  return await openRenderer(model ?? (await openModelOf(policy)))
}

/** A spent budget is an end like any other where nothing is kept that could go on. */
async function* withinBudget(groups: AsyncGenerator<Group>): AsyncGenerator<Group> {
  try {
    yield* groups
  } catch (error) {
    if (!(error instanceof RunStoppedError)) throw error
  }
}
