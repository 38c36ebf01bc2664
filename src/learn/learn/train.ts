import { setMaxListeners } from 'node:events'
import type { ModelRenderer } from '@espalier/text/chat'
import type { Environment } from '../../base/core/environment.ts'
import type { TreeId } from '../../base/core/ids.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { Interval } from '../../base/math/intervals.ts'
import { refuseBatch } from '../../engine/weigh/estimate.ts'
import { checkImportance, readImportance } from '../../engine/weigh/importance.ts'
import { openBudget } from '../../run/run/budget.ts'
import { checkRolling, checkTaskArgument } from '../../run/run/check-options.ts'
import { openObserved } from '../../run/run/observed.ts'
import { openRollParts } from '../../run/run/open-parts.ts'
import { openRun } from '../../run/run/open-run-folder.ts'
import { recordedOptions } from '../../run/run/recorded-options.ts'
import { type RollParts, withBudget } from '../../run/run/roll-groups.ts'
import type { AttemptOptions } from '../../run/run/roll-options.ts'
import { checkOptions } from '../../run/settings/check-options.ts'
import { openNamed } from '../../run/settings/open-named.ts'
import { isInsideUri } from '../../run/settings/open-policy.ts'
import { defaults, withoutUndefined } from '../../run/settings/settings.ts'
import { openRunReader } from '../../run/store/store.ts'
import { environmentsOf, makeSampler } from '../../run/tasks/mixed-tasks.ts'
import { checkTaskSampler, type TaskSamplingReport } from '../../run/tasks/sample-tasks.ts'
import type { TaskSource } from '../../run/tasks/tasks.ts'
import type { ObserverNotes } from '../../run/watch/observe.ts'
import { writeReport } from '../../run/watch/run-report.ts'
import { type EmbeddedPolicy, isEmbedded } from '../model/policy.ts'
import { rendererFor } from '../model/teach.ts'
import type { Evaluation, Measured } from './held-out.ts'
import { notEmbedded, openLearner, trainerKind } from './open-trainer.ts'
import type { OpenFeed } from './steps/feed.ts'
import { learnedFrom } from './steps/learned-from.ts'
import type { Ledger } from './steps/ledger.ts'
import type { Stored } from './steps/stored.ts'
import type { LearningOptions, TrainOptions } from './train-options.ts'
import { type FurthestMismatch, runTraining, type Training } from './training.ts'
import type { TrainingPlan } from './training-plan.ts'
import { readState } from './training-state.ts'
import { linesBefore } from './verdict/foretell.ts'
import { usualEvery } from './verdict/stops.ts'
import { type Verdict, verdictOf } from './verdict/verdict.ts'

/** What training gave. */
export interface Trained {
  /** On held-out tasks, before the first step and after the last. */
  readonly successBefore: number
  readonly successAfter: number
  readonly intervalBefore: Interval
  readonly intervalAfter: Interval
  readonly steps: number
  readonly sampledTokens: number
  readonly seconds: number
  readonly best: Training['best']
  /** What happened, why, and what to do about it. */
  readonly verdict: Verdict
  /** Which tasks were drawn, and their recent success. */
  readonly tasks: TaskSamplingReport
  /** Where the log-probabilities of trainer and sampler were furthest apart. */
  readonly mismatch?: FurthestMismatch
  /** Held-out success environment by environment, before and after, if there are several. */
  readonly environments?: Readonly<
    Record<string, { readonly before: Measured; readonly after: Measured }>
  >
  /** What became of every token that was sampled. */
  readonly ledger: Ledger
  /** The stored run that was learned from, off-policy. */
  readonly from?: Stored
  /** The share of the steps' time that the trainer waited for groups. */
  readonly waited: number
  /** The run folder, if there is one. */
  readonly run: string | undefined
  readonly training: Training
}

/**
 * Rolls and learns in turn; gives the success on held-out tasks before and after.
 *
 * @example
 * const { successBefore, successAfter } = await train(desk(), 2000, { policy: 'embedded' })
 */
export async function train<Data>(
  environment: Environment<Data> | string,
  tasks: TaskSource<Data>,
  options: TrainOptions<Data>,
): Promise<Trained> {
  checkOptions<'train', TrainOptions<Data>>('train', options)
  checkTaskArgument(tasks)
  checkRolling(environment, options.out)
  return await trainOn(environment, tasks, options)
}

/** Who makes the groups that are learned from. */
interface Fed {
  /** Then no tasks are held out, and none are needed. @default they are rolled here, from the tasks */
  readonly feed?: OpenFeed
}

/** Opens everything that options name, and trains. */
export async function trainOn<Data>(
  environment: Environment<Data> | string,
  tasks: TaskSource<Data> | undefined,
  options: TrainOptions<Data> & Fed,
): Promise<Trained> {
  await checkLearning(options)
  const rolling: TrainOptions<Data> = {
    ...options,
    ...ownRenderer(options),
    // The embedded trainer computes both itself with its current weights.
    ...(trainerKind(options.trainer)?.isInside && { proximal: 'recorded', importance: [] }),
  }
  await using opened = await openRollParts(environment, tasks, rolling)
  if ((options.sinks?.length ?? 0) > 0) refuseBatch(opened.parts.estimate, '--sinks')
  for (const line of options.tell ? await linesBefore(opened.parts, options) : []) {
    options.tell?.(line)
  }
  if (options.out === undefined) return await trainParts(tasks, opened.parts, options)
  const { out } = options
  const { trained, notes } = await trainObserved(tasks, opened.parts, { ...options, out })
  const { training: _, ...record } = trained
  await writeReport(out, { training: record, ...notes })
  return trained
}

async function trainObserved<Data>(
  tasks: TaskSource<Data> | undefined,
  parts: RollParts<Data>,
  options: TrainOptions<Data> & Fed & { readonly out: string },
): Promise<{ readonly trained: Trained; readonly notes: ObserverNotes }> {
  await using observed = await openObserved(parts, options)
  return {
    trained: await trainParts(tasks, observed.parts, options),
    notes: await observed.notes(),
  }
}

/** An opened embedded policy brings its tokenizer and template along. */
function ownRenderer({ policy, model }: AttemptOptions): Pick<AttemptOptions, 'model'> {
  if (model !== undefined || typeof policy !== 'object' || !('sample' in policy)) return {}
  return isEmbedded(policy) ? { model: rendererOf(policy) } : {}
}

/** Refuses options that cannot be trained with, before anything is opened. */
export async function checkLearning(
  options: Partial<Pick<TrainOptions, 'policy' | 'trainer' | 'group' | 'budget'>> &
    Pick<
      TrainOptions,
      | 'steps'
      | 'tasksPerStep'
      | 'loss'
      | 'sampleTasks'
      | 'importance'
      | 'proximal'
      | 'teacher'
      | 'distill'
      | 'maxStaleness'
      | 'lookAhead'
      | 'singleTurn'
      | 'strategy'
      | 'from'
    >,
): Promise<void> {
  const { policy = [], trainer = defaults.trainer } = options
  const uris = typeof policy === 'string' ? [policy] : 'sample' in policy ? [] : policy
  const strange = uris.find(uri => !isInsideUri(uri))
  if (trainerKind(trainer)?.isInside && strange !== undefined) throw notEmbedded(strange)
  const { loss = defaults.loss, budget, group = defaults.group } = options
  if (typeof loss === 'string')
    await openNamed(`--loss ${loss}`, () => trainerKind(trainer)?.checkLoss(loss))
  const { sampleTasks } = options
  if (sampleTasks !== undefined) {
    await openNamed(`--sample-tasks ${sampleTasks}`, async () => checkTaskSampler(sampleTasks))
  }
  await checkOffPolicy(options)
  checkLookAhead(options)
  checkSingleTurn(options)
  checkFrom(options)
  if (budget?.trajectories === undefined) return
  const { steps = defaults.steps, tasksPerStep = defaults.tasksPerStep } = options
  throw new SettingError(
    `--budget: trajectories are for roll and eval. How many train rolls its steps say: ${steps} steps × ` +
      `${tasksPerStep} tasks × ${group} = ${steps * tasksPerStep * group}, and evaluations. Set --steps, ` +
      '--tasks-per-step or --group, or a budget of tokens, seconds or money',
  )
}

/** Refuses to be further ahead than training data may be old: what is rolled then would be thrown away. */
function checkLookAhead({
  lookAhead,
  maxStaleness = defaults.maxStaleness,
}: Pick<TrainOptions, 'lookAhead' | 'maxStaleness'>): void {
  if (lookAhead === undefined || lookAhead <= maxStaleness) return
  throw new SettingError(
    `--look-ahead ${lookAhead}: rolling cannot be further ahead than training data may be old, ` +
      `which --max-staleness ${maxStaleness} says; raise that one too`,
  )
}

/** Refuses prompts that were not sampled from, unless the weights that learn can say what they make of them. */
function checkSingleTurn({
  singleTurn,
  strategy,
  trainer,
  proximal,
}: Pick<TrainOptions, 'singleTurn' | 'strategy' | 'trainer' | 'proximal'>): void {
  if (!singleTurn) return
  if (!trainerKind(trainer)?.isInside)
    throw new SettingError('--single-turn is for --trainer embedded, which scores the new prompts')
  if (strategy === 'step')
    throw new SettingError(
      '--single-turn: with --strategy step, each turn is sampled behind a prompt of its own already',
    )
  if (proximal !== 'recompute')
    throw new SettingError(
      '--single-turn needs --proximal recompute: what was sampled behind the whole conversation says nothing of the new prompts',
    )
}

/** Refuses what only makes sense while attempts are rolled. */
function checkFrom({
  from,
  maxStaleness = defaults.maxStaleness,
}: Pick<TrainOptions, 'from' | 'maxStaleness'>): void {
  if (from === undefined || maxStaleness === 0) return
  throw new SettingError(
    `--max-staleness ${maxStaleness} is for attempts that are rolled while others are learned from, and --from ${from} rolls none`,
  )
}

/** Refuses importance weights and ratios that the trainer does not support. */
async function checkOffPolicy(
  options: Pick<TrainOptions, 'trainer' | 'importance' | 'proximal' | 'teacher' | 'distill'>,
): Promise<void> {
  const { trainer, importance = [], proximal, teacher, distill } = options
  await openNamed(`--importance ${importance.join(' ')}`, async () =>
    checkImportance(importance, proximal),
  )
  if (teacher !== undefined && distill === undefined) {
    throw new SettingError('--teacher teaches nothing without --distill alone or --distill added')
  }
  if (typeof trainer !== 'string' || trainerKind(trainer)?.isInside !== false) return
  if (proximal !== 'recompute' || readImportance(importance).ratios.length > 0) return
  throw new SettingError(
    `--trainer ${trainer}: --proximal recompute is for its weights by ratio; name some with --importance, or leave it out`,
  )
}

/** Trains with opened parts, which stay open. */
export async function trainParts<Data>(
  tasks: TaskSource<Data> | undefined,
  parts: RollParts<Data>,
  options: LearningOptions<Data> & Fed,
): Promise<Trained> {
  const started = performance.now()
  const { environment, seed = defaults.seed } = parts
  const { evaluateEvery, evaluateStrategy, evaluateTemperature, evaluateBeside } = options
  const { onStep, onEvaluation, isEnough } = options
  const { maxStaleness, lookAhead, onUpdate, out } = options
  const { tasksPerStep = defaults.tasksPerStep } = options
  const perStep = tasksPerStep * (parts.group ?? defaults.group) * (parts.leaves ?? 1)
  const { steps, feed, stored, ...tasksOf } = await learnedFrom(tasks, parts, options)
  const from = options.resumes && options.out ? await readState(options.out) : undefined
  const plan: TrainingPlan<Data> = {
    tasks: makeSampler(
      options.sampleTasks ?? defaults.sampleTasks,
      { tasks: tasksOf.train, ...withoutUndefined({ mixed: environment.mixed }) },
      seed,
    ),
    ...withoutUndefined({
      environmentOf: environmentsOf(environment, [...tasksOf.train, ...tasksOf.heldOut]),
    }),
    heldOut: tasksOf.heldOut,
    ...withoutUndefined({ heldOutSplit: tasksOf.heldOutSplit }),
    steps,
    tasksPerStep,
    checkpointEvery: options.checkpointEvery ?? defaults.checkpointEvery,
    successAt: options.successAt ?? defaults.successAt,
    refill: options.refill ?? defaults.refill,
    patience: options.patience ?? defaults.patience,
    evaluateEvery: evaluateEvery ?? usualEvery(steps, { heldOut: tasksOf.heldOut.length, perStep }),
    ...withoutUndefined({ evaluateStrategy, evaluateTemperature, evaluateBeside }),
    ...withoutUndefined({ onStep, onEvaluation, isEnough }),
    ...withoutUndefined({ maxStaleness, lookAhead, onUpdate, out, feed }),
    ...(!trainerKind(options.trainer)?.isInside &&
      withoutUndefined({ importance: options.importance })),
    ...(from && { from }),
  }
  await using learner = await openLearner({ parts, options, tasks: tasksOf.train })
  const { trainer } = learner
  const training = await keepRun(
    { ...options, isFed: feed !== undefined },
    listening(parts),
    kept => runTraining(plan, kept, trainer),
  )
  const { before, after, sampledTokens, best, mismatch } = training
  return {
    successBefore: before.success,
    successAfter: after.success,
    intervalBefore: before.interval,
    intervalAfter: after.interval,
    steps: training.steps,
    sampledTokens,
    seconds: (performance.now() - started) / 1000,
    best,
    verdict: verdictOf({
      ...training,
      tries: plan.tasks.report().draws / Math.max(1, tasksOf.train.length),
      tasks: tasksOf.train.length,
    }),
    tasks: plan.tasks.report(),
    ...(mismatch && { mismatch }),
    ...environmentsIn(before, after),
    ledger: training.ledger,
    ...(stored && { from: stored }),
    waited: training.waited,
    run: options.out,
    training,
  }
}

function environmentsIn(before: Evaluation, after: Evaluation): Pick<Trained, 'environments'> {
  if (!before.byEnvironment) return {}
  const each = Object.entries(before.byEnvironment).flatMap(([name, own]) => {
    const later = after.byEnvironment?.[name]
    return later ? [[name, { before: own, after: later }] as const] : []
  })
  return { environments: Object.fromEntries(each) }
}

/** The parts with a signal that hundreds of attempts may listen to, which is not a leak. */
function listening<Data>(parts: RollParts<Data>): RollParts<Data> {
  const { signal = new AbortController().signal } = parts
  setMaxListeners(0, signal)
  return { ...parts, signal }
}

/** The renderer that an embedded policy's own files make. */
export function rendererOf({ model, name }: EmbeddedPolicy): ModelRenderer {
  return rendererFor(name, model.files)
}

/** Keeps what `work` rolls in a run folder, if one is wanted. */
async function keepRun<Data>(
  options: LearningOptions<Data> & { readonly isFed: boolean },
  parts: RollParts<Data>,
  work: (parts: RollParts<Data>) => Promise<Training>,
): Promise<Training> {
  const { out } = options
  if (out === undefined) {
    using budget = openBudget(parts.budget ?? {})
    return await work(withBudget(parts, budget))
  }
  const { environment, policy } = parts
  const config = {
    environment: environment.name,
    policy: policy.name,
    ...recordedOptions(options),
    ...options.config,
  }
  const { resumes = false, isFed } = options
  const record = { out, kind: 'train', config, unfinished: 'restart', resumes } as const
  await using run = await openRun(parts, record)
  try {
    const known = resumes && !isFed ? await knownTrees(out, options) : undefined
    const { spent } = run.parts
    using budget = openBudget(parts.budget ?? {}, spent && { spent })
    const kept = { ...parts, ...run.parts, ...(known && { known }) }
    const training = await work(withBudget(kept, budget))
    await run.finish()
    return training
  } catch (error) {
    run.fail(error)
    throw error
  }
}

/**
 * The finished trees of the step at which a run was interrupted: the checkpoint has the weights that
 * sampled them. If rolling runs ahead of learning they may be older, and are rolled again.
 */
async function knownTrees<Data>(
  out: string,
  { maxStaleness = 0 }: LearningOptions<Data>,
): Promise<ReadonlyMap<TreeId, Tree>> {
  const known = new Map<TreeId, Tree>()
  const state = await readState(out)
  if (!state || maxStaleness > 0) return known
  await using reader = await openRunReader(out)
  for await (const tree of reader.trees(`${state.step + 1}/`)) known.set(tree.id, tree)
  return known
}
