import type { Environment } from '../core/environment.ts'
import type { Filter } from '../core/group.ts'
import { parsePartName } from '../core/part-name.ts'
import type { RewardPart } from '../core/reward.ts'
import { passagesFactory } from '../environments/passages.ts'
import { openEnvironment } from '../environments/registry.ts'
import { tauFactory } from '../environments/tau/factory.ts'
import { openFilter } from '../filters/registry.ts'
import type { Retry } from '../policies/with-retries.ts'
import { openReward } from '../rewards/registry.ts'
import { openGuard } from '../rollout/guards/registry.ts'
import type { ReasoningFormat, ToolFormat } from '../text/parser.ts'
import { openEstimate } from './estimate.ts'
import { openModelOf, openRenderer } from './model-source.ts'
import { openCondense } from './open-condense.ts'
import { openPolicy } from './open-policy.ts'
import { openSpeaker } from './open-speaker.ts'
import { openStrategy } from './open-strategy.ts'
import type { RollParts } from './roll.ts'
import { SettingError, type Settings } from './settings.ts'
import { openSignals, type Signals } from './signals.ts'
import { tauServices } from './tau-services.ts'
import { isUserPart, loadUserPart } from './user-part.ts'

/** Tells people what is going on, line by line. */
export type Tell = (line: string) => void

/** Opens everything that settings name. Disposing it disposes of the policy and the environment. */
export async function openRunParts(
  values: Settings,
  tell: Tell,
): Promise<{ readonly parts: RollParts } & AsyncDisposable> {
  const environment = await openEnvironmentNamed(needed(values, 'environment'))
  const reward = await openRewards(values.reward, values.judge)
  const estimate = openEstimate(values.advantage)
  const opened = await openPolicyAndRenderer(values, tell)
  const { condense: condenser } = values
  const condense = condenser ? await openCondense(condenser, opened.renderer) : undefined
  const rolling = await openStrategy(values, { environment, reward, renderer: opened.renderer })
  const parts: RollParts = {
    estimate,
    ...opened,
    ...rolling,
    ...(reward && { reward }),
    filters: await openFilters(values.filters),
    more: { guards: values.guards.map(openGuard), ...(condense && { condense }) },
    group: values.group,
    sampling: {
      temperature: values.temperature,
      topP: values.topP,
      topK: values.topK,
      minP: values.minP,
    },
    limits: {
      turns: values.maxTurns,
      tokens: values.maxRolloutTokens,
      context: values.maxContext,
      newTokens: values.maxNewTokens,
      ...(values.maxSeconds !== undefined && { seconds: values.maxSeconds }),
    },
    onLength: values.onLength,
    stop: values.stop,
    weighting: values.weighting,
    concurrency: compact(values.concurrency),
    ...(values.budget && { budget: values.budget }),
    leaves: values.strategy === 'tree' ? values.leaves : 1,
    adaptive: values.adaptive,
    ...(values.keep !== undefined && { keep: values.keep }),
    overSample: values.overSample,
    refill: values.refill,
    seed: values.seed,
    ...(values.split !== undefined && { split: values.split }),
  }
  return {
    parts,
    async [Symbol.asyncDispose]() {
      await opened.policy[Symbol.asyncDispose]()
      await condense?.[Symbol.asyncDispose]()
      await (environment as Partial<AsyncDisposable>)[Symbol.asyncDispose]?.()
    },
  }
}

function needed<Name extends keyof Settings>(
  values: Settings,
  name: Name,
): NonNullable<Settings[Name]> {
  const value = values[name]
  if (value === undefined || value === null) {
    throw new SettingError(`--${name} is missing: name one with the flag or in a config file`)
  }
  return value
}

/** Fields without a value are left out, so that defaults are not overwritten. */
function compact<T extends object | number>(
  value: T,
): Exclude<RollParts['concurrency'], undefined> {
  if (typeof value === 'number') return value
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined))
}

/** An environment by name, or the user's own. */
export async function openEnvironmentNamed(name: string): Promise<Environment> {
  if (!isUserPart(name)) {
    const factories = { passages: passagesFactory, tau: tauFactory(tauServices()) }
    return await openEnvironment(name, factories)
  }
  const part = await loadUserPart(name)
  if (typeof part === 'object' && part !== null && 'open' in part && 'readTask' in part) {
    return part as Environment
  }
  throw new TypeError(`${name} is not an environment: make one with environment({ … })`)
}

/** Filters by name, or the user's own. */
export async function openFilters(names: readonly string[]): Promise<readonly Filter[]> {
  const opened: Filter[] = []
  for (const name of names) {
    const part = isUserPart(name)
      ? await loadUserPart(name)
      : openFilter(name, { version: () => 0 })
    if (typeof part !== 'object' || part === null || !('judge' in part)) {
      throw new TypeError(`${name} is not a filter: an object with a name and judge(group)`)
    }
    opened.push(part as Filter)
  }
  return opened
}

/** Rewards by name, or the user's own; nothing where none are named. */
export async function openRewards(
  names: readonly string[] | undefined,
  speaker: string | undefined,
): Promise<Environment['reward'] | undefined> {
  if (!names) return undefined
  const parts: Record<string, RewardPart> = {}
  for (const name of names) {
    const part = isUserPart(name)
      ? await loadUserPart(name)
      : openReward(name, speaker === undefined ? {} : { speaker: await openSpeaker(speaker) })
    const label = isUserPart(name) ? (name.split('#')[1] ?? name) : parsePartName(name).name
    if (typeof part !== 'function' && typeof part !== 'object') {
      throw new TypeError(`${name} is not a reward function`)
    }
    parts[label] = part as RewardPart
  }
  return parts
}

async function openPolicyAndRenderer(
  values: Settings,
  tell: Tell,
): Promise<Pick<RollParts, 'policy' | 'renderer'> & { readonly signals: Signals }> {
  const key = process.env[values.keyVariable]
  const signals = openSignals()
  const onRetry = ({ attempt, waitSeconds, cause }: Retry): void => {
    const { problem, status } = cause
    const told = { problem, attempt, waitSeconds, ...(status !== undefined && { status }) }
    signals.emit({ kind: 'retry', ...told })
  }
  const policy = await openPolicy(needed(values, 'policy'), {
    ...(key !== undefined && { key }),
    ...(values.servedModel !== undefined && { servedModel: values.servedModel }),
    deadlineSeconds: values.deadline,
    retries: values.retries === 0 ? false : { attempts: values.retries + 1, onRetry },
    ...(values.record !== undefined && { record: values.record }),
    ...(values.model !== undefined && { model: values.model }),
  })
  const model = values.model ?? (await openModelOf(policy))
  const renderer = await openRenderer(model, {
    history: values.history,
    templateVariables: values.templateVariables,
    ...(values.toolInstruction && { toolInstruction: values.toolInstruction }),
    ...(values.toolFormat !== undefined && { toolFormat: values.toolFormat as ToolFormat }),
    ...(values.reasoningFormat !== undefined && {
      reasoningFormat: values.reasoningFormat as ReasoningFormat,
    }),
    offline: values.offline,
    hub: values.hub,
    tell,
  })
  return { policy, renderer, signals }
}
