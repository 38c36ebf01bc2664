import { existsSync } from 'node:fs'
import { type AgentFunction, plainAgent } from '../capture/agent.ts'
import type { Environment, Isolation } from '../core/environment.ts'
import type { Filter } from '../core/group.ts'
import type { Guard } from '../core/guard.ts'
import type { RewardPart } from '../core/reward.ts'
import { SettingError } from '../core/setting-error.ts'
import { passagesFactory } from '../environments/built-in/passages.ts'
import { openEnvironment } from '../environments/registry.ts'
import { tauFactory } from '../environments/tau/factory.ts'
import { checkOutputFile, refuseFolder } from '../exchange/output-file.ts'
import { openFilter } from '../filters/registry.ts'
import { parsePartName } from '../names/part-name.ts'
import type { Retry } from '../policies/with-retries.ts'
import { openReward } from '../rewards/registry.ts'
import { openGuard } from '../rollout/guards/registry.ts'
import { openModelOf, openRenderer, rendererSettings } from '../settings/model-source.ts'
import { openCondenseNamed } from '../settings/open-condense.ts'
import { openNamed } from '../settings/open-named.ts'
import { openPolicy } from '../settings/open-policy.ts'
import { openSpeaker } from '../settings/open-speaker.ts'
import { openStrategy } from '../settings/open-strategy.ts'
import type { Settings } from '../settings/settings.ts'
import { tauServices } from '../settings/tau-services.ts'
import { isUserPart, loadUserPart } from '../settings/user-part.ts'
import { formatNamed } from '../sinks/formats/registry.ts'
import { checkFirstTask, makesNone } from '../tasks/tasks.ts'
import { openSignals, type Signals } from '../watch/signals.ts'
import { type Estimate, openEstimate } from '../weigh/estimate.ts'
import type { RollParts } from './roll-groups.ts'

/** Tells people what is going on, line by line. */
export type Tell = (line: string) => void

/**
 * Opens everything that settings name. Disposing it disposes of the policy and the environment.
 * `otherwise` is the environment where none has to be named.
 */
export async function openRunParts(
  values: Settings,
  tell: Tell,
  otherwise?: Environment,
): Promise<{ readonly parts: RollParts } & AsyncDisposable> {
  const { environment, estimate, filters, guards } = await openPlainParts(values, otherwise)
  if (environment.isolation) tell(isolationLine(environment.isolation))
  const reward = await openRewards(values.reward, values.judge)
  const { condense: condenser } = values
  const opened = await openPolicyAndRenderer(values, tell)
  const condense = condenser ? await openCondenseNamed(condenser, opened.renderer) : undefined
  const rolling = await openStrategy(values, { environment, reward, renderer: opened.renderer })
  const parts: RollParts = {
    estimate,
    ...opened,
    ...rolling,
    ...(reward && { reward }),
    filters,
    more: { guards, ...(condense && { condense }) },
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

/** Which walls stand around code that the policy writes, loud where there are none. */
function isolationLine({ standing, missing }: Isolation): string {
  if (standing.includes('network')) return `walls around code: ${standing.join(', ')}`
  return (
    `WARNING: code of the policy runs without walls of the system against ${missing.join(', ')}. ` +
    'Roll only policies that you trust here, or see docs/threat-model.md'
  )
}

/** What settings name that neither samples nor asks anybody, all of it checked. */
export async function openPlainParts(values: Settings, otherwise?: Environment) {
  const isNamed = values.environment !== undefined || !otherwise
  const environment = isNamed
    ? await openEnvironmentNamed(needed(values, 'environment'))
    : otherwise
  await checkTasks(values, environment)
  const estimate = await openEstimateNamed(values.advantage)
  for (const { to, out } of values.sinks) {
    await openNamed(`--sinks ${to}`, () => formatNamed(to))
    refuseFolder(`--sinks ${to}`, out)
  }
  const filters = await openFilters(values.filters)
  return { environment, estimate, filters, guards: await openGuards(values.guards) }
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

/** Tasks that are not there or begin wrongly are refused before anything is opened for them. */
async function checkTasks(
  { tasks, heldOut, split }: Settings,
  environment: Environment,
): Promise<void> {
  const { name, splits } = environment
  for (const [flag, source] of Object.entries({ tasks, 'held-out': heldOut })) {
    if (typeof source === 'number' && !environment.makeTasks) throw makesNone(name)
    if (typeof source !== 'string') continue
    if (existsSync(source)) {
      await openNamed(`--${flag}`, () => checkFirstTask(environment, source))
      continue
    }
    const hint = Number.isNaN(Number(source))
      ? ''
      : '; how many to make is a whole number from 1 on'
    throw new SettingError(`--${flag} ${source}: there is no such file or run${hint}`)
  }
  if (split === undefined || !splits || splits.includes(split)) return
  throw new SettingError(
    `--split ${split}: environment "${name}" has no such split. Known: ${splits.join(', ')}.`,
  )
}

/** Fields without a value are left out, so that defaults are not overwritten. */
function compact<T extends object | number>(
  value: T,
): Exclude<RollParts['concurrency'], undefined> {
  if (typeof value === 'number') return value
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined))
}

/** The comparison that `--advantage` names. */
export function openEstimateNamed(name: string): Promise<Estimate> {
  return openNamed(`--advantage ${name}`, () => openEstimate(name))
}

/** An environment by name, or the user's own. */
export async function openEnvironmentNamed(name: string): Promise<Environment> {
  if (!isUserPart(name)) {
    const factories = { passages: passagesFactory, tau: tauFactory(tauServices()) }
    return await openNamed(`--environment ${name}`, () => openEnvironment(name, factories))
  }
  const part = await loadUserPart(name)
  if (typeof part === 'function') return plainAgent(name, part as AgentFunction)
  if (typeof part === 'object' && part !== null && 'open' in part && 'readTask' in part) {
    return part as Environment
  }
  throw new SettingError(
    `--environment ${name}: this is neither an environment nor an agent; make one with environment({ … }) or agent({ … })`,
  )
}

/** Filters by name, or the user's own. */
export async function openFilters(names: readonly string[]): Promise<readonly Filter[]> {
  const opened: Filter[] = []
  for (const name of names) {
    const part = isUserPart(name)
      ? await loadUserPart(name)
      : await openNamed(`--filter ${name}`, () => openFilter(name, { version: () => 0 }))
    if (typeof part !== 'object' || part === null || !('judge' in part)) {
      throw new SettingError(
        `--filter ${name}: this is not a filter, an object with a name and judge(group)`,
      )
    }
    opened.push(part as Filter)
  }
  return opened
}

async function openGuards(names: readonly string[]): Promise<readonly Guard[]> {
  const opened: Guard[] = []
  for (const name of names) opened.push(await openNamed(`--guard ${name}`, () => openGuard(name)))
  return opened
}

/** Rewards by name, or the user's own; nothing where none are named. */
export async function openRewards(
  names: readonly string[] | undefined,
  speaker: string | undefined,
): Promise<Environment['reward'] | undefined> {
  if (!names) return undefined
  const needs =
    speaker === undefined
      ? {}
      : { speaker: await openNamed(`--judge ${speaker}`, () => openSpeaker(speaker)) }
  const parts: Record<string, RewardPart> = {}
  for (const name of names) {
    const part = isUserPart(name)
      ? await loadUserPart(name)
      : await openNamed(`--reward ${name}`, () => openReward(name, needs))
    const label = isUserPart(name) ? (name.split('#')[1] ?? name) : parsePartName(name).name
    if (typeof part !== 'function' && typeof part !== 'object') {
      throw new SettingError(`--reward ${name}: this is not a reward function`)
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
  const uris = needed(values, 'policy')
  const { record, model, servedModel } = values
  if (record !== undefined) checkOutputFile('--record', record)
  const rendering = { ...rendererSettings(values), tell }
  // The named model is opened first: scripted policies are written in its tokens.
  const named = model && (await openNamed(undefined, () => openRenderer(model, rendering)))
  const policy = await openNamed(`--policy ${uris.join(' ')}`, () =>
    openPolicy(uris, {
      ...(key !== undefined && { key }),
      ...(servedModel !== undefined && { servedModel }),
      deadlineSeconds: values.deadline,
      retries: values.retries === 0 ? false : { attempts: values.retries + 1, onRetry },
      ...(record !== undefined && { record }),
      ...(named && { encode: text => named.tokenizer.encode(text) }),
    }),
  )
  if (named) return { policy, renderer: named, signals }
  const served = await openModelOf(policy)
  const place = `the model that --policy ${uris.join(' ')} serves`
  const renderer = await openNamed(place, () => openRenderer(served, rendering))
  return { policy, renderer, signals }
}
