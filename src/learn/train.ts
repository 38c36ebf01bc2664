import { setMaxListeners } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { ModelRenderer } from '../chat/renderer.ts'
import type { Environment, Task } from '../core/environment.ts'
import type { TreeId } from '../core/ids.ts'
import type { Policy } from '../core/policy.ts'
import type { Renderer } from '../core/renderer.ts'
import type { Trainer } from '../core/trainer.ts'
import type { Tree } from '../core/tree.ts'
import type { Interval } from '../math/intervals.ts'
import { openEmbedded } from '../model/embedded.ts'
import { type EmbeddedPolicy, isEmbedded } from '../model/policy.ts'
import { rendererFor } from '../model/teach.ts'
import { openBudget } from '../run/budget.ts'
import { openRun } from '../run/open-run-folder.ts'
import { type RollParts, withBudget } from '../run/roll-groups.ts'
import { runPaths } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import { openTaskStream, splitTasks } from '../tasks/task-stream.ts'
import type { TaskSource } from '../tasks/tasks.ts'
import { openEstimate } from '../weigh/estimate.ts'
import type { EmbeddedTrainerOptions } from './embedded-trainer.ts'
import type { Evaluation } from './held-out.ts'
import { openTrainer, pickDefined } from './open-trainer.ts'
import { oraclePrompts, oracleTokenBonus } from './oracle.ts'
import { runTraining, type Training, type TrainingPlan } from './training.ts'
import { readState } from './training-state.ts'

/** How long and how a policy learns. */
export interface LearningOptions<Data = unknown>
  extends Pick<
      TrainingPlan<Data>,
      'evaluateEvery' | 'onStep' | 'onEvaluation' | 'maxStaleness' | 'onUpdate'
    >,
    Pick<
      EmbeddedTrainerOptions,
      'learningRate' | 'loss' | 'lossOptions' | 'epochs' | 'updates' | 'entropy'
    > {
  /** Learns instead of the embedded trainer; it is left open. */
  readonly trainer?: Trainer
  /** @default 60 */
  readonly steps?: number
  /** @default 32 */
  readonly tasksPerStep?: number
  /** Tasks to evaluate on, or how many. @default a split made for it, else a fifth of the tasks */
  readonly heldOut?: TaskSource<Data>
  /** Coefficient of the KL penalty to the starting weights. @default 0 */
  readonly klPenalty?: number
  /** What a nat under a task's oracle prompt adds to a token's advantage. @default 0 */
  readonly oracleBonus?: number
  /** @default 20 */
  readonly checkpointEvery?: number
  /** The reward from which on a task counts as solved. @default 1 */
  readonly successAt?: number
  /** Further tasks per task of a step, where filters drop whole groups. @default 2 */
  readonly refill?: number
  /** A run folder to keep everything in. @default none */
  readonly out?: string
  /** Goes on with the training run that `out` holds, from its newest checkpoint. @default false */
  readonly resumes?: boolean
  /** Settings to write into the run's manifest, for people and for resuming. */
  readonly record?: Readonly<Record<string, unknown>>
}

/** How a policy is trained. Only the policy has to be named. */
export interface TrainOptions<Data = unknown>
  extends Omit<
      RollParts<Data>,
      'environment' | 'policy' | 'renderer' | 'estimate' | 'writer' | 'known' | 'finished'
    >,
    LearningOptions<Data> {
  /** An embedded policy, or `embedded` or `embedded:DIR`; any policy where a trainer is given. */
  readonly policy: Policy | string
  /** The renderer of a policy that is not embedded. */
  readonly renderer?: Renderer
  /** @default 'grpo' */
  readonly advantage?: string
}

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
  /** The run folder, where there is one. */
  readonly run: string | undefined
  readonly training: Training
}

/** Rolls and learns in turn; gives the success on held-out tasks before and after. */
export async function train<Data>(
  environment: Environment<Data>,
  tasks: TaskSource<Data>,
  options: TrainOptions<Data>,
): Promise<Trained> {
  const opened = await openTrained(options.policy)
  try {
    const parts = toRollParts(environment, opened.policy, options)
    return await trainParts(tasks, parts, options)
  } finally {
    await opened.close()
  }
}

/** Trains with everything opened; what is given is left open. */
export async function trainParts<Data>(
  tasks: TaskSource<Data>,
  parts: RollParts<Data>,
  options: LearningOptions<Data>,
): Promise<Trained> {
  const started = performance.now()
  const { environment, seed = 0, split } = parts
  const tasksOf = await splitTasks(environment, tasks, {
    seed,
    ...(split !== undefined && { split }),
    ...pickDefined(options, ['heldOut']),
  })
  const from = options.resumes && options.out ? await readState(options.out) : undefined
  const plan: TrainingPlan<Data> = {
    tasks: openTaskStream(tasksOf.train, seed),
    heldOut: tasksOf.heldOut,
    steps: options.steps ?? 60,
    tasksPerStep: options.tasksPerStep ?? 32,
    checkpointEvery: options.checkpointEvery ?? 20,
    successAt: options.successAt ?? 1,
    refill: options.refill ?? 2,
    ...pickDefined(options, [
      'evaluateEvery',
      'onStep',
      'onEvaluation',
      'maxStaleness',
      'onUpdate',
      'out',
    ]),
    ...(from && { from }),
  }
  const trainer = options.trainer ?? (await openLearner(parts, options, tasksOf.train))
  await using _closing = options.trainer ? undefined : trainer
  const training = await keepRun(options, bounded(parts), kept => runTraining(plan, kept, trainer))
  const { before, after, sampledTokens, best } = training
  return {
    successBefore: before.success,
    successAfter: after.success,
    intervalBefore: before.interval,
    intervalAfter: after.interval,
    steps: plan.steps,
    sampledTokens,
    seconds: (performance.now() - started) / 1000,
    best,
    run: options.out,
    training,
  }
}

/** An open policy is left open; one that was named is closed in the end. */
async function openTrained(
  policy: Policy | string,
): Promise<{ readonly policy: Policy; close(): Promise<void> }> {
  if (typeof policy !== 'string') return { policy, close: async () => {} }
  const [scheme, ...rest] = policy.split(':')
  if (scheme !== 'embedded') {
    throw new Error(
      `"${policy}" cannot be trained here: open it and give a trainer, or train "embedded".`,
    )
  }
  const opened = await openEmbedded(rest.length > 0 ? rest.join(':') : undefined)
  return { policy: opened, close: async () => opened[Symbol.asyncDispose]() }
}

function openLearner<Data>(
  { policy, renderer, weighting, seed = 0 }: RollParts<Data>,
  options: LearningOptions<Data>,
  tasks: readonly Task<Data>[],
): Promise<Trainer> {
  const { oracleBonus: coefficient = 0, successAt = 1 } = options
  const promptOf = oraclePrompts(tasks)
  return openTrainer(policy, {
    ...pickDefined(options, [
      'learningRate',
      'loss',
      'lossOptions',
      'epochs',
      'updates',
      'entropy',
      'klPenalty',
    ]),
    ...(weighting && { weighting }),
    seed,
    ...(coefficient > 0 && {
      bonus: oracleTokenBonus({ policy, renderer, promptOf, coefficient, successAt }),
    }),
  })
}

function toRollParts<Data>(
  environment: Environment<Data>,
  policy: Policy,
  options: TrainOptions<Data>,
): RollParts<Data> {
  const renderer = options.renderer ?? (isEmbedded(policy) ? rendererOf(policy) : undefined)
  if (!renderer) throw new Error(`${policy.name} is not embedded: give its renderer.`)
  const estimate = openEstimate(options.advantage ?? 'grpo')
  return { concurrency: 256, ...options, environment, policy, renderer, estimate }
}

/** The parts with limits that the model's own context sets. */
function bounded<Data>(parts: RollParts<Data>): RollParts<Data> {
  const { policy, limits = {}, signal = new AbortController().signal } = parts
  // Hundreds of attempts wait on one signal; that is no leak.
  setMaxListeners(0, signal)
  if (!isEmbedded(policy)) return { ...parts, signal }
  const context = Math.min(policy.model.shape.context, limits.context ?? Number.POSITIVE_INFINITY)
  return { ...parts, signal, limits: { ...limits, context } }
}

/** The renderer that an embedded policy's own files make. */
export function rendererOf({ model, name }: EmbeddedPolicy): ModelRenderer {
  return rendererFor(name, model.files)
}

/** Keeps what `work` rolls in a run folder, where one is wanted. */
async function keepRun<Data>(
  options: LearningOptions<Data>,
  parts: RollParts<Data>,
  work: (parts: RollParts<Data>) => Promise<Training>,
): Promise<Training> {
  const { out } = options
  if (parts.budget?.trajectories !== undefined) {
    throw new Error(
      'a budget of trajectories is for rolling: steps, tasksPerStep and group say how many training ' +
        'rolls; bound it by these, or by tokens, seconds or money',
    )
  }
  if (out === undefined) {
    using budget = openBudget(parts.budget ?? {})
    return await work(withBudget(parts, budget))
  }
  const { environment, policy } = parts
  const config = { environment: environment.name, policy: policy.name, ...options.record }
  const { resumes = false } = options
  const record = { out, kind: 'train', config, unfinished: 'restart', resumes } as const
  await using run = await openRun(parts, record)
  try {
    const known = resumes ? await knownTrees(out, options) : undefined
    const { spent } = run.parts
    using budget = openBudget(parts.budget ?? {}, spent && { spent })
    const kept = { ...parts, ...run.parts, ...(known && { known }) }
    const training = await work(withBudget(kept, budget))
    await writeFile(runPaths(out).report, `${JSON.stringify(toReport(training), null, 2)}\n`)
    await run.finish()
    return training
  } catch (error) {
    run.fail(error)
    throw error
  }
}

/**
 * The trees of the step that an interrupted run was at: the weights that sampled them are those of
 * the checkpoint. Where rolling runs ahead of learning they may be older, and are rolled again.
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

function toReport({ before, after, sampledTokens, best }: Training): object {
  const short = ({ attempts: _, ...evaluation }: Evaluation): object => evaluation
  return { before: short(before), after: short(after), sampledTokens, best }
}
