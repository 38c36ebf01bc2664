import { existsSync } from 'node:fs'
import type { Renderer } from '@espalier/text'
import type { Environment, Isolation } from '../../base/core/environment.ts'
import type { Filter } from '../../base/core/group.ts'
import type { Guard } from '../../base/core/guard.ts'
import { nearFile } from '../../base/core/names/near-file.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Policy } from '../../base/core/policy.ts'
import { absences } from '../../base/core/process/absences.ts'
import { isAgent } from '../../engine/capture/agent.ts'
import { openFilter } from '../../engine/filters/registry.ts'
import { withBasisWatch } from '../../engine/policies/with-basis-watch.ts'
import type { Retry } from '../../engine/policies/with-retries.ts'
import type { CondenseSettings } from '../../engine/rollout/attempt.ts'
import { makeGuard } from '../../engine/rollout/guards/registry.ts'
import { type Estimate, makeEstimate } from '../../engine/weigh/estimate.ts'
import { shapedEstimate } from '../../engine/weigh/shape.ts'
import { openShots } from '../demonstrations/shots.ts'
import { checkOutputFile, refuseForeign } from '../exchange/output-file.ts'
import { greetServers } from '../settings/greet.ts'
import { findModelOf, openRenderer, rendererSettings } from '../settings/model-source.ts'
import { openEnvironmentNamed } from '../settings/open-environment.ts'
import { openNamed } from '../settings/open-named.ts'
import { openPolicy } from '../settings/open-policy.ts'
import { openPrompted } from '../settings/open-prompt.ts'
import { readStrategy } from '../settings/open-strategy.ts'
import { defaults, withoutUndefined } from '../settings/settings.ts'
import { isUserPart, loadUserPart } from '../settings/user-part.ts'
import { imageSettings } from '../store/images/open-images.ts'
import { readManifest } from '../store/run-folder.ts'
import { checkTaskSource, makesNone, type TaskSource } from '../tasks/tasks.ts'
import { makeSignals, type Signals } from '../watch/signals.ts'
import { RunStoppedError } from '../watch/stopped.ts'
import { checkRolling } from './check-options.ts'
import { closeEnvironment } from './close-environment.ts'
import { limitsFor } from './limits-for.ts'
import { openRewards } from './open-rewards.ts'
import { makeScorers, makeShaping, type ShapingNames } from './open-scorers.ts'
import { openSeats } from './open-seats.ts'
import type { RollParts } from './roll-groups.ts'
import type { AttemptOptions, GroupOptions, RollOptions } from './roll-options.ts'
import { makePartMoves, watchOutage } from './servers/outage.ts'
import { evidenceWords, settleLogprobs } from './servers/settle-logprobs.ts'
import { openThreads } from './threads/open-threads.ts'

/** Everything that a run is rolled with, opened. Disposing of it closes what was opened for it. */
export interface OpenedParts<Data = unknown> extends AsyncDisposable {
  readonly parts: RollParts<Data>
}

/** What parts are opened with. */
export interface PartsOptions extends RollOptions {
  /**
   * Whether requests to servers go through a thread. Passing them between threads adds latency, which
   * clients of a door would notice. @default true on several cores
   */
  readonly serverThread?: boolean
  /** Whether a policy's server that is away is waited for; else those who ask are told. @default true */
  readonly outwaits?: boolean
  /** Where images are kept, if that is not the run's own folder. */
  readonly imageFolder?: string | undefined
}

/**
 * Opens everything that options name; all parts of a run are opened here. Parts that are passed as
 * objects are used as they are and stay open.
 */
export async function openRollParts<Data>(
  environment: Environment<Data> | string,
  tasks: TaskSource<Data> | undefined,
  given: PartsOptions,
): Promise<OpenedParts<Data>> {
  checkRolling(environment, given.out)
  const options = { ...given, today: await beginOf(given) }
  const plain = await openPlainParts(environment, tasks, options)
  const { isolation } = plain.environment
  if (isolation) options.tell?.(isolationLine(isolation))
  const reward = await openRewards(options.reward, options.judge)
  const closing: (() => PromiseLike<void> | undefined)[] = []
  const halting = openHalting(options)
  closing.push(async () => halting.close())
  const close = async (): Promise<void> => {
    for (const each of closing) await each()
  }
  const open = async (): Promise<RollParts<Data>> => {
    if (typeof environment === 'string') {
      closing.push(() => closeEnvironment(plain.environment, options.tell))
    }
    const { isOwn, isAsked, policy, ...sampling } = await openPolicyAndRenderer(options, halting)
    if (isOwn) closing.unshift(() => policy[Symbol.asyncDispose]())
    if (options.condense) refuseCondensing(plain.environment)
    const condense = await openCondensing(options.condense, sampling.renderer)
    closing.splice(1, 0, () => condense?.[Symbol.asyncDispose]?.())
    const { renderer } = sampling
    const { seed = defaults.seed, out } = options
    const seating = { environment: plain.environment, policy, renderer, seed, out }
    const { seats, ...opened } = await openSeats(options.seats, seating)
    closing.unshift(() => opened[Symbol.asyncDispose]())
    const rolling = await readStrategy(options, {
      environment: plain.environment,
      reward,
      renderer,
    })
    const { elsewhere, ...same } = sameOptions(options)
    const examples = await openShots(plain.environment, tasks, options)
    const scorers = await makeScorers(options, policy, closing)
    const parts: RollParts<Data> = {
      ...same,
      ...plain,
      ...sampling,
      images: imageSettings(options),
      ...(scorers && { scorers }),
      ...(rolling as typeof rolling & { readonly environment: Environment<Data> }),
      policy,
      signal: halting.signal,
      signals: halting.signals,
      limits: await limitsFor(policy, options, isAsked),
      sampling: withoutUndefined(options.sampling ?? {}),
      reward: reward ?? plain.environment.reward,
      condense,
      ...(seats && { seats }),
      ...(examples && { examples }),
      leaves: leavesOf(options),
    }
    const places = elsewhere
      ? await elsewhere(parts as RollParts)
      : openThreads({ environment, options }, parts as RollParts)
    if (!places) return parts
    closing.unshift(() => places[Symbol.asyncDispose]())
    return { ...parts, elsewhere: places }
  }
  try {
    return { parts: await open(), [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}

/** When the run began, which another day may go on with: templates that write the date write this one. */
async function beginOf({ today, resumes, out }: PartsOptions): Promise<Date> {
  if (today || !resumes || out === undefined) return today ?? new Date()
  return new Date((await readManifest(out)).started)
}

/** The options that are no parts of their own. */
function sameOptions(options: PartsOptions) {
  const {
    unfinished: _,
    seats: _seats,
    serverThread: _thread,
    outwaits: _outwaits,
    images: _images,
    imageFolder: _imageFolder,
    ...same
  } = options
  return same
}

/** The line that says which walls protect this machine from the policy's code; a warning if there are none. */
function isolationLine({ by, standing, missing }: Isolation): string {
  const held = by === undefined ? '' : ` (${by})`
  if (standing.includes('network')) return `walls around code: ${standing.join(', ')}${held}`
  return (
    `WARNING: code of the policy runs without walls of the system against ${missing.join(', ')}${held}. ` +
    'Roll only policies that you trust here, or see docs/reference/threat-model.md'
  )
}

/** Most endings of one tree: one, unless trees are rolled, or a strategy that says how many. */
function leavesOf({ strategy, leaves }: RollOptions): number {
  if (strategy === 'tree') return leaves ?? defaults.leaves
  return typeof strategy === 'function' ? (leaves ?? 1) : 1
}

/** The options that name parts without a model or a server behind them. */
export type PlainOptions = Pick<AttemptOptions, 'guards' | 'prompt' | 'split'> &
  Pick<GroupOptions, 'advantage' | 'filters' | 'sinks'> &
  ShapingNames & {
    /** Tasks to evaluate on, if there are some. */
    readonly heldOut?: TaskSource<never>
  }

/** Opens and checks the parts without a model or a server behind them. */
export async function openPlainParts<Data>(
  given: Environment<Data> | string,
  tasks: TaskSource<Data> | undefined,
  options: PlainOptions,
): Promise<Pick<RollParts<Data>, 'environment' | 'estimate'> & PlainParts> {
  const own =
    typeof given === 'string' ? ((await openEnvironmentNamed(given)) as Environment<Data>) : given
  const environment = await openPrompted(own, options.prompt)
  const { heldOut, split } = options
  await checkTasks({ tasks, 'held-out': heldOut as TaskSource<Data> }, environment, split)
  const named = await openEstimateNamed(options.advantage ?? defaults.advantage)
  const estimate = shapedEstimate(named, await makeShaping(options))
  for (const { to, out } of options.sinks ?? []) {
    const { formatNamed } = await import('../sinks/formats/registry.ts')
    await openNamed(`--sinks ${to}`, () => formatNamed(to))
    refuseForeign(`--sinks ${to}`, out, 'export')
  }
  const filters = await openFilters(options.filters ?? [])
  return { environment, estimate, filters, guards: await makeGuards(options.guards ?? []) }
}

interface PlainParts {
  readonly filters: readonly Filter[]
  readonly guards: readonly Guard[]
}

/** Tasks that are not there or begin wrongly are refused before anything is opened for them. */
async function checkTasks<Data>(
  sources: Readonly<Record<string, TaskSource<Data> | undefined>>,
  environment: Environment<Data>,
  split: string | undefined,
): Promise<void> {
  const { name, splits } = environment
  for (const [flag, source] of Object.entries(sources)) {
    // A number of held-out tasks may also be taken from the given tasks.
    const isMade = typeof source === 'number' && flag === 'tasks'
    if (isMade && !environment.makeTasks) throw makesNone(name)
    if (typeof source !== 'string') continue
    if (existsSync(source)) {
      await openNamed(`--${flag}`, () => checkTaskSource(environment, source))
      continue
    }
    const hint = Number.isNaN(Number(source))
      ? `.${nearFile(source)}`
      : '; how many to make is a whole number from 1 on'
    throw new SettingError(`--${flag} ${source}: there is no such file or run${hint}`)
  }
  if (split === undefined || !splits || splits.includes(split)) return
  throw new SettingError(
    `--split ${split}: environment "${name}" has no such split. Known: ${splits.join(', ')}.`,
  )
}

/** The comparison that `--advantage` names. */
export function openEstimateNamed(name: string): Promise<Estimate> {
  return openNamed(`--advantage ${name}`, () => makeEstimate(name))
}

/** Filters by name, the user's own in files, or opened ones. */
export async function openFilters(given: readonly (string | Filter)[]): Promise<readonly Filter[]> {
  const opened: Filter[] = []
  for (const each of given) {
    const part = typeof each === 'string' ? await makeFilterNamed(each) : each
    if (typeof part !== 'object' || part === null || !('judge' in part)) {
      throw new SettingError(
        `--filter ${each}: this is not a filter, an object with a name and judge(group)`,
      )
    }
    opened.push(part as Filter)
  }
  return opened
}

async function makeFilterNamed(name: string): Promise<unknown> {
  if (isUserPart(name)) return await loadUserPart(name)
  return await openNamed(`--filter ${name}`, () => openFilter(name, { version: () => 0 }))
}

async function makeGuards(given: readonly (string | Guard)[]): Promise<readonly Guard[]> {
  const opened: Guard[] = []
  for (const each of given) {
    const isNamed = typeof each === 'string'
    opened.push(isNamed ? await openNamed(`--guard ${each}`, () => makeGuard(each)) : each)
  }
  return opened
}

/** Throws for agents: they decide themselves what their model sees. */
function refuseCondensing(environment: Environment): void {
  if (!isAgent(environment)) return
  throw new SettingError(
    `--condense is for environments: agent "${environment.name}" decides itself what its model is shown`,
  )
}

/** A condenser by name is closed with the run; an opened one is not. */
async function openCondensing(
  given: AttemptOptions['condense'],
  renderer: Renderer,
): Promise<(CondenseSettings & Partial<AsyncDisposable>) | undefined> {
  if (typeof given === 'string') {
    const { openCondense } = await import('../settings/open-condense.ts')
    return await openCondense(given, renderer)
  }
  return given && { ...given, [Symbol.asyncDispose]: async () => {} }
}

type Sampling = Pick<RollParts, 'policy' | 'renderer'> & {
  /** Whether the policy was opened here. */
  readonly isOwn: boolean
  /** Whether asking it for its context may help: its servers told theirs when they were greeted. */
  readonly isAsked: boolean
}

/** What may stop a run from within, to be resumed. */
interface Halting {
  readonly signals: Signals
  readonly signal: AbortSignal
  halt(error: RunStoppedError): void
  close(): void
}

function openHalting({ signal, tell, outage: seconds = defaults.outage }: PartsOptions): Halting {
  const signals = makeSignals()
  const stop = new AbortController()
  const halt = (error: RunStoppedError): void => stop.abort(error)
  const joined = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal
  const close = watchOutage({ seconds, signals, tell, halt })
  return { signals, signal: joined, halt, close }
}

async function openPolicyAndRenderer(options: PartsOptions, halting: Halting): Promise<Sampling> {
  const { policy: given, record, model, servedModel, logprobs, tell, serverThread } = options
  const { outwaits = true } = options
  if (record !== undefined) checkOutputFile('--record', record)
  const rendering = { ...rendererSettings(options), ...(tell && { tell }) }
  const { keyVariable = defaults.keyVariable } = options
  const key = process.env[keyVariable]
  const uris = typeof given === 'object' && 'sample' in given ? [] : [given].flat()
  if (servedModel !== undefined) refuseTwoModels(uris)
  // Servers are greeted before a tokenizer is looked for.
  const asking = {
    ...(key !== undefined && { key }),
    ...(servedModel !== undefined && { servedModel }),
  }
  const greeted = await greetServers(uris, { keyVariable, ...asking })
  const isAsked = greeted.length === 0 || greeted.some(each => each?.context !== undefined)
  // Open the model before the policy: scripted policies need its tokenizer.
  const named =
    typeof model === 'string'
      ? await openNamed(undefined, () => openRenderer(model, rendering))
      : undefined
  const opened = typeof model === 'object' ? model : named
  if (typeof given === 'object' && 'sample' in given) {
    const renderer = opened ?? (await openRenderer(await findModelOf(given), rendering))
    return { policy: given, renderer, isOwn: false, isAsked }
  }
  const { signals } = halting
  const onRetry = ({ attempt, waitSeconds, cause }: Retry): void => {
    const { problem, status } = cause
    const told = { problem, attempt, waitSeconds, ...(status !== undefined && { status }) }
    signals.emit({ kind: 'retry', ...told })
  }
  const { retries = defaults.retries, deadline = defaults.deadline } = options
  const policy = await openNamed(`--policy ${uris.join(' ')}`, () =>
    openPolicy(uris, {
      ...asking,
      ...(logprobs !== undefined && { logprobs }),
      ...(serverThread !== undefined && { thread: serverThread }),
      weights: {
        ...(options.offline !== undefined && { offline: options.offline }),
        ...(options.hub !== undefined && { hub: options.hub }),
        ...(options.device !== undefined && { device: options.device }),
        ...(tell && { tell }),
      },
      deadlineSeconds: deadline,
      // What a turn has when the time is up is kept only of a stream.
      ...(options.limits?.seconds !== undefined && { stream: true }),
      ...(outwaits && { absences }),
      onMoved: makePartMoves({ signals, tell }),
      retries: retries === 0 ? false : { attempts: retries + 1, onRetry },
      ...(record !== undefined && { record }),
      ...(named && { encode: text => named.tokenizer.encode(text) }),
    }),
  )
  const own = { isOwn: true, isAsked }
  const settled = async (renderer: Renderer): Promise<Sampling> => {
    const { temperature = defaults.temperature } = options.sampling ?? {}
    await settleLogprobs(policy, { renderer, uris, temperature, logprobs }, halting)
    return { ...own, renderer, policy: watchBasis(policy, halting) }
  }
  if (opened) return settled(opened)
  const served = await findModelOf(policy)
  const place = `the model that --policy ${uris.join(' ')} serves`
  const renderer = await openNamed(place, () => openRenderer(served, rendering))
  return settled(renderer)
}

/** Stops the run, to be resumed, when a server gives other numbers than rows say. */
function watchBasis(policy: Policy, { halt }: Halting): Policy {
  return withBasisWatch(policy, ({ server, label, evidence }) => {
    const message = `${server} no longer gives ${label} log-probabilities, as rows say: ${evidenceWords(evidence)}`
    halt(new RunStoppedError('basis', `${message}. Was it started again with other flags?`))
  })
}

/** Throws if both the policy's URI and `--served-model` name a model. */
function refuseTwoModels(uris: readonly string[]): void {
  const named = uris.find(uri => uri.includes('#'))
  if (named === undefined) return
  throw new SettingError(`--policy ${named} names its model, and so does --served-model: give one`)
}
