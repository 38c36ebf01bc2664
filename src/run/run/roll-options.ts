import type { Renderer } from '@espalier/text'
import type { Environment } from '../../base/core/environment.ts'
import type { Filter } from '../../base/core/group.ts'
import type { Guard } from '../../base/core/guard.ts'
import type { LaneLimits } from '../../base/core/lane.ts'
import type { Policy, Sampling } from '../../base/core/policy.ts'
import type { Prompt } from '../../engine/environments/prompted.ts'
import type { CondenseSettings, Instrument, Limits } from '../../engine/rollout/attempt.ts'
import type { BranchPolicy } from '../../engine/rollout/branch.ts'
import type { Strategy } from '../../engine/rollout/strategy.ts'
import type { Conversation } from '../demonstrations/conversation.ts'
import { membersOf, type SettingOptionOf, takesSetting } from '../settings/check-options.ts'
import { needed } from '../settings/open-named.ts'
import type { OptionTaker } from '../settings/setting.ts'
import {
  type SettingName,
  type Settings,
  type SettingsInput,
  type settings,
  withoutUndefined,
} from '../settings/settings.ts'
import type { Listen } from '../watch/events.ts'
import type { BudgetLimits } from './budget.ts'
import type { Elsewhere } from './elsewhere.ts'
import type { SeatChoices } from './open-seats.ts'
import type { RollParts } from './roll-groups.ts'

/** The options that take more than their setting: parts that are opened already, or your own. */
interface MoreThanNames {
  readonly model: string | Renderer
  readonly seats: SeatChoices
  readonly prompt: string | Prompt
  readonly demonstrations: string | readonly Conversation[]
  readonly strategy: Settings['strategy'] | Strategy
  readonly branch: string | BranchPolicy
  readonly condense: string | CondenseSettings
  readonly guards: readonly (string | Guard)[]
  readonly filters: readonly (string | Filter)[]
  readonly reward: Environment['reward'] | readonly string[]
  readonly reference: Policy | string
  readonly teacher: Policy | string
  readonly concurrency: number | Partial<LaneLimits & { readonly rollouts: number }>
  readonly budget: BudgetLimits
}

type Given<Name extends SettingName> = Name extends keyof MoreThanNames
  ? MoreThanNames[Name]
  : Exclude<SettingsInput[Name], undefined>

/** Every setting as an option; each function takes some. */
export type SettingOptions = {
  readonly [Name in keyof typeof settings]?: Given<Name>
}

/** The settings that a function takes as options; its policy is named apart, because it has to be given. */
export type OptionsOf<Taker extends OptionTaker> = Pick<
  SettingOptions,
  Exclude<SettingOptionOf<Taker>, 'policy'>
>

/** What every function takes besides settings. */
export interface RunOptions {
  /** The policy: its URI as on the command line, several URIs that share the load, or an opened policy. */
  readonly policy: Policy | string | readonly string[]
  /** Temperature, top-p, top-k and min-p. @default the policy's own distribution */
  readonly sampling?: Partial<Sampling>
  /** What ends an attempt: turns, tokens, context, seconds. */
  readonly limits?: Partial<Limits>
  /** Called with every event as it happens. */
  readonly listen?: Listen
  /** Called with lines for people, such as warnings. @default none */
  readonly tell?: (line: string) => void
  /** Instruments around every attempt, the first innermost. @default none */
  readonly instruments?: readonly Instrument[]
  /** Stops the run; what a run folder holds can be resumed. */
  readonly signal?: AbortSignal
  /** The date that chat templates write. @default that on which the run began */
  readonly today?: Date
  /** Goes on with the run that `out` holds. @default false */
  readonly resumes?: boolean
  /** What of that run is rolled again although it ended. @default nothing */
  readonly retry?: 'failed' | undefined
  /** Opens other places that make the attempts, such as those of `openCluster`. @default this process */
  readonly elsewhere?: OpenElsewhere
  /** The settings to record in the run folder, for people and for `espalier resume`. */
  readonly config?: Readonly<Record<string, unknown>>
}

/** Opens other places than this process for the attempts of these parts. */
export type OpenElsewhere = (parts: RollParts) => Promise<Elsewhere & AsyncDisposable>

/** How attempts are made, whatever they are made for. */
export interface AttemptOptions
  extends RunOptions,
    Pick<SettingOptions, keyof OptionsOf<'roll'> & keyof OptionsOf<'evaluate'>> {}

/** How groups are made, compared and written. */
export interface GroupOptions
  extends Pick<
    SettingOptions,
    Exclude<keyof OptionsOf<'roll'> & keyof OptionsOf<'train'>, keyof AttemptOptions>
  > {}

/** How groups are rolled. Only the policy is required; defaults are those of the flags. */
export interface RollOptions extends RunOptions, OptionsOf<'roll'> {}

/** The options that settings make. */
export function rollOptionsOf(values: Settings): RollOptions {
  return optionsOf('roll', values)
}

/** The options of any function that makes attempts, as far as it takes them. A setting and its option have one name. */
export function optionsOf(taker: OptionTaker, values: Settings): RollOptions {
  const { concurrency } = values
  return {
    ...optionsNamedAlike(taker, values),
    policy: needed(values, 'policy'),
    sampling: gathered('sampling', values),
    limits: gathered('limits', values),
    concurrency: typeof concurrency === 'object' ? withoutUndefined(concurrency) : concurrency,
    config: values,
  }
}

/** The settings that stand together in one option. */
function gathered(group: 'sampling' | 'limits', values: Settings): Partial<Sampling & Limits> {
  return withoutUndefined(
    Object.fromEntries([...membersOf(group)].map(([own, name]) => [own, values[name]])),
  )
}

/** The settings that are options under their own names. */
function optionsNamedAlike(
  taker: OptionTaker,
  values: Settings,
): ReturnType<typeof withoutUndefined<Settings>> {
  const given = Object.entries(withoutUndefined(values))
  return Object.fromEntries(given.filter(([name]) => takesSetting(taker, name as SettingName)))
}
