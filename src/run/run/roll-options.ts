import type { History, Renderer } from '@espalier/text'
import type { Environment } from '../../base/core/environment.ts'
import type { Filter } from '../../base/core/group.ts'
import type { Guard } from '../../base/core/guard.ts'
import type { LaneLimits } from '../../base/core/lane.ts'
import type { Policy, Sampling } from '../../base/core/policy.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import type { CondenseSettings, Instrument, Limits } from '../../engine/rollout/attempt.ts'
import type { BranchPolicy } from '../../engine/rollout/branch.ts'
import type { Strategy } from '../../engine/rollout/strategy.ts'
import { type OptionTaker, takesSetting } from '../settings/check-options.ts'
import { needed } from '../settings/open-named.ts'
import { type Settings, withoutUndefined } from '../settings/settings.ts'
import type { Listen } from '../watch/events.ts'
import type { BudgetLimits } from './budget.ts'
import type { Elsewhere } from './elsewhere.ts'
import type { SeatChoices } from './open-seats.ts'
import type { RollParts } from './roll-groups.ts'

/** What samples, and how it is reached. */
export interface PolicyOptions {
  /** The policy: its URI as on the command line, several URIs that share the load, or an opened policy. */
  readonly policy: Policy | string | readonly string[]
  /** The name the server knows its model by. @default what it serves */
  readonly servedModel?: string
  /** Whether log-probabilities of servers are raw or processed by the temperature. @default what each is found to give */
  readonly logprobs?: 'raw' | 'processed'
  /** The environment variable that holds the server's key. @default 'ESPALIER_POLICY_KEY' */
  readonly keyVariable?: string
  /** Seconds one request to a server may take. @default 600 */
  readonly deadline?: number
  /** How often a request that failed is tried again. @default 5 */
  readonly retries?: number
  /** A file to write every sample to, which `replay:FILE` reads. @default none */
  readonly record?: string
}

/** What turns messages into tokens and back. */
export interface RendererOptions {
  /** Tokenizer and chat template: a folder, an id, or an opened renderer. @default what the server says it serves */
  readonly model?: string | Renderer
  /** Never fetch tokenizer files from a hub. @default false */
  readonly offline?: boolean
  /** Where tokenizer files of an id are fetched from. @default 'https://huggingface.co' */
  readonly hub?: string
  /** Whether a template may rewrite what was sampled. @default 'preserve' */
  readonly history?: History
  /** Whether markers that a model spelled out count as such. @default 'text' */
  readonly markers?: Settings['markers']
  /** Values for the chat template. @default none */
  readonly templateVariables?: Readonly<Record<string, unknown>>
  /** How the model writes calls. @default found from its template */
  readonly toolFormat?: string
  /** How the model writes reasoning. @default found from its template */
  readonly reasoningFormat?: string
  /** Replaces the sentence in which the template offers tools. @default the template's own */
  readonly toolInstruction?: { readonly find: string; readonly replace: string }
}

/** Who observes a run. */
export interface WatchOptions {
  /** Called with every event as it happens. */
  readonly listen?: Listen
  /** Called with lines for people, such as warnings. @default none */
  readonly tell?: (line: string) => void
  /** Instruments around every attempt, the first innermost. @default none */
  readonly instruments?: readonly Instrument[]
  /** Warn about silent failures; needs a run folder. @default true */
  readonly sentinels?: boolean
  /** A port to serve metrics for Prometheus on; needs a run folder. @default none */
  readonly metricsPort?: number
  /** Where curves are written: `tensorboard:DIR`. */
  readonly metrics?: string
  /** A collector to send OpenTelemetry traces to; needs a run folder. @default none */
  readonly traces?: string
  /** Channels that people are told through; needs a run folder. @default none */
  readonly notify?: Settings['notify']
}

/** How attempts are made, whatever they are made for. */
export interface AttemptOptions extends PolicyOptions, RendererOptions, WatchOptions {
  /** Who plays seats of the environment: NAME=POLICY, or by name. @default the policy plays all, and learns */
  readonly seats?: SeatChoices
  /** How an attempt is rolled: by name, or your own. @default 'chain' */
  readonly strategy?: Settings['strategy'] | Strategy
  /** Where a tree branches: a name with options, or your own. @default 'fixed' */
  readonly branch?: string | BranchPolicy
  /** Most endings of one tree. @default 8 for trees, else 1 */
  readonly leaves?: number
  /** Turns of the past that a step is shown. @default 3 */
  readonly stepHistory?: number
  /** The condenser for long contexts: a name with options, or an opened one. @default none */
  readonly condense?: string | CondenseSettings
  /** Watchers that stop a sample early, by name or your own. @default none */
  readonly guards?: readonly (string | Guard)[]
  /** Temperature, top-p, top-k and min-p. @default the policy's own distribution */
  readonly sampling?: Partial<Sampling>
  /** What ends an attempt: turns, tokens, context, seconds. */
  readonly limits?: Partial<Limits>
  /** Whether a turn cut by its token limit ends the attempt. @default 'end' */
  readonly onLength?: 'end' | 'continue'
  /** Whether an attempt that ran out of wall-clock time may be scored. @default 'ungraded' */
  readonly onTime?: 'ungraded' | 'graded'
  /** Texts that end a turn. @default none */
  readonly stop?: readonly string[]
  /** Candidates per token to keep with their log-probabilities. @default 0 */
  readonly topLogprobs?: number
  /** Used instead of the environment's own reward: names as on the command line, or functions. */
  readonly reward?: Environment['reward'] | readonly string[]
  /** The model that a reward named `judge` asks. */
  readonly judge?: string
  /** Seconds that each part of a reward may take before it fails the attempt. @default 600 */
  readonly rewardSeconds?: number
  /** Rollouts and requests at one time: one number, or lane by lane. @default 64 */
  readonly concurrency?: number | Partial<LaneLimits & { readonly rollouts: number }>
  /** Adjusts the number of concurrent requests to the server's signals. @default false */
  readonly adaptive?: boolean
  /** What the whole run may cost. @default no limit */
  readonly budget?: BudgetLimits
  /** The seed that every random draw comes from. @default 0 */
  readonly seed?: number
  /** Which split of the environment's tasks. @default its own */
  readonly split?: string
  /** Stops the run; what a run folder holds can be resumed. */
  readonly signal?: AbortSignal
  /** A run folder to keep everything in. @default none */
  readonly out?: string
  /** Goes on with the run that `out` holds. @default false */
  readonly resumes?: boolean
  /** What a resumed run does with attempts that were cut. @default 'continue' */
  readonly unfinished?: 'continue' | 'restart'
  /** Threads that share the attempts; all parts must be given by name. @default 'auto': started when this thread is always busy */
  readonly threads?: number | 'auto'
  /** Opens other places that make the attempts, such as those of `openCluster`. @default this process */
  readonly elsewhere?: OpenElsewhere
  /** The settings to record in the run folder, for people and for `espalier resume`. */
  readonly config?: Readonly<Record<string, unknown>>
}

/** Opens other places than this process for the attempts of these parts. */
export type OpenElsewhere = (parts: RollParts) => Promise<Elsewhere & AsyncDisposable>

/** How groups are made, compared and written. */
export interface GroupOptions {
  /** Trees per task. @default 8 */
  readonly group?: number
  /** How the members of a group are compared. @default 'grpo' */
  readonly advantage?: string
  /** How the endings of a tree share their tokens. @default 'uniform' */
  readonly weighting?: LeafWeighting
  /** A policy whose log-probabilities of every sampled token are kept; its URI, or an opened one. @default none */
  readonly reference?: Policy | string
  /** A policy to learn from, kept likewise. @default none */
  readonly teacher?: Policy | string
  /** On-policy distillation: `alone` or `added`, with a coefficient. @default none */
  readonly distill?: string
  /** Coefficient of the KL penalty. @default 0 */
  readonly klPenalty?: number
  /** Whether the KL penalty is in the loss or taken off rewards. @default 'loss' */
  readonly klIn?: 'loss' | 'reward'
  /** A penalty on rewards of long trajectories. @default none */
  readonly overlong?: string
  /** Where ratios start from; `recompute` lets the policy score its finished tokens and keeps that. @default 'recorded' */
  readonly proximal?: 'recorded' | 'recompute'
  /** Importance weights, which correct for tokens sampled from other weights than those that learn; exports carry them. @default none */
  readonly importance?: readonly string[]
  /** Judges that drop trajectories, by name or your own. @default none */
  readonly filters?: readonly (string | Filter)[]
  /** Exports written while the run goes on; needs a run folder. @default none */
  readonly sinks?: readonly { readonly to: string; readonly out: string }[]
  /** Groups that may be rolled in place of those that filters emptied, per group wanted. @default 2 */
  readonly refill?: number
}

/** How groups are rolled. Only the policy is required; defaults are those of the flags. */
export interface RollOptions extends AttemptOptions, GroupOptions {
  /** Stop early when so many groups have something to train on. @default every task's */
  readonly keep?: number
  /** Groups begun for each one that `keep` still wants. @default 1 */
  readonly overSample?: number
}

/**
 * The options that settings make. A setting and its option have one name, so that a new one needs
 * no line here; only limits and sampling are put together from several.
 */
export function rollOptionsOf(values: Settings): RollOptions {
  return optionsOf('roll', values)
}

/** The options of any function that makes attempts, as far as it takes them. */
export function optionsOf(taker: OptionTaker, values: Settings): RollOptions {
  const { temperature, topP, topK, minP, maxSeconds: seconds } = values
  const { concurrency } = values
  return {
    ...optionsNamedAlike(taker, values),
    policy: needed(values, 'policy'),
    sampling: { temperature, topP, topK, minP },
    limits: {
      turns: values.maxTurns,
      tokens: values.maxRolloutTokens,
      context: values.maxContext,
      newTokens: values.maxNewTokens,
      ...(seconds !== undefined && { seconds }),
    },
    concurrency: typeof concurrency === 'object' ? withoutUndefined(concurrency) : concurrency,
    config: values,
  }
}

/** The settings that are options under their own names. */
function optionsNamedAlike(
  taker: OptionTaker,
  values: Settings,
): ReturnType<typeof withoutUndefined<Settings>> {
  const given = Object.entries(withoutUndefined(values))
  return Object.fromEntries(given.filter(([name]) => takesSetting(taker, name)))
}
