import type { Task } from '../../base/core/environment.ts'
import { type Group, reasonsUnscored } from '../../base/core/group.ts'
import { type GroupId, seatGroup, type TaskId } from '../../base/core/ids.ts'
import type { Trainer, TrainerStep } from '../../base/core/trainer.ts'
import { attemptMeans } from '../../base/math/attempts.ts'
import { seedOf } from '../../base/math/random.ts'
import { mean } from '../../base/math/statistics.ts'
import { comparedAnew } from '../../engine/weigh/batch-scale.ts'
import { readImportance, weighImportance } from '../../engine/weigh/importance.ts'
import { changeElsewhere } from '../../run/run/elsewhere.ts'
import type { OnUpdate } from '../../run/run/pause.ts'
import { seatsOf } from '../../run/run/pipeline.ts'
import { openRollPipeline, type RollParts } from '../../run/run/roll-groups.ts'
import type { TaskOutcome, TaskSampler } from '../../run/tasks/sample-tasks.ts'
import { type Fed, type Feed, type OpenFeed, openFeed } from './feed.ts'
import { type Evaluation, type EvaluationStrategy, evaluateHeldOut } from './held-out.ts'
import { type Keeper, openKeeper } from './keeper.ts'
import { type ChangeWeights, learnStep } from './learn-step.ts'
import { openHistory, type Staleness, stalenessOf, type VersionHistory } from './staleness.ts'
import type { BestStep, TrainingState } from './training-state.ts'
import { type Course, type CourseStep, courseOf } from './verdict/course.ts'
import { isSolved, openStops, type Stopped } from './verdict/stops.ts'

/** How long and on what a policy trains. */
export interface TrainingPlan<Data = unknown> {
  readonly tasks: TaskSampler<Data>
  readonly heldOut: readonly Task<Data>[]
  /** The environment's split that the held-out tasks were made of. */
  readonly heldOutSplit?: string
  readonly steps: number
  readonly tasksPerStep: number
  /** Steps in a row that leave the weights as they are, after which training ends; 0: it never does. */
  readonly patience: number
  /** Steps between evaluations; before the first step and after the last there is always one. */
  readonly evaluateEvery?: number
  /** Whether held-out tasks are attempted as chains or as training rolls. @default chains in place of trees */
  readonly evaluateStrategy?: EvaluationStrategy
  /** Steps between checkpoints; the start and the end are always kept. */
  readonly checkpointEvery: number
  /** The reward from which on a task counts as solved. */
  readonly successAt: number
  /** Extra tasks per task of a step, to replace groups that filters drop. */
  readonly refill: number
  /** Importance weights of tokens, for trainers that do not make them themselves. */
  readonly importance?: readonly string[]
  /** How many steps old training data may be; 0 rolls and learns in turn. */
  readonly maxStaleness?: number
  /** What happens to samples under way when the weights change, if rolling runs ahead. @default 'abort' */
  readonly onUpdate?: OnUpdate
  /** Who makes the groups. @default they are rolled here, from the tasks */
  readonly feed?: OpenFeed
  /** Where an interrupted run goes on from. */
  readonly from?: TrainingState
  /** The run folder; without one nothing is kept. */
  readonly out?: string
  readonly onStep?: (record: StepRecord) => void
  /** Asked after every step; the first that is enough is the last. @default only the number of steps ends it */
  readonly isEnough?: (record: StepRecord) => boolean
  readonly onEvaluation?: (evaluation: Evaluation, step: number) => void
}

/** One step as it is written to the run's metrics. */
export interface StepRecord {
  readonly step: number
  /** The version of the weights after it. */
  readonly version: number
  readonly reward: number
  /** The mean reward seat by seat, where several learn. */
  readonly rewardBySeat?: Readonly<Record<string, number>>
  /** Solved share of the step's attempts. */
  readonly success: number
  /** Examples that were shown before each task. */
  readonly shots?: number
  readonly groups: number
  /** Members that filters dropped. */
  readonly dropped: number
  readonly unscored: number
  readonly sampledTokens: number
  /** Tokens that requests began with, cached ones too. */
  readonly promptTokens: number
  readonly turns: number
  /** How many steps old the training data is. */
  readonly staleness: Staleness
  /** Groups that had grown too old to learn from. */
  readonly stale: number
  readonly seconds: { readonly roll: number; readonly learn: number }
  readonly metrics: TrainerStep['metrics']
  /** Other output of the trainer, such as the tokens that changed most. */
  readonly more: Readonly<Record<string, unknown>>
}

/** The result of training. */
export interface Training {
  readonly before: Evaluation
  readonly after: Evaluation
  /** Steps that were taken, by an earlier sitting too. */
  readonly steps: number
  readonly sampledTokens: number
  /** The best evaluation; step 0 if no later one was better than the start. */
  readonly best: BestStep
  readonly course: Course
  /** Why it ended before its last step. */
  readonly stopped?: Stopped
  /** Where trainer and sampler were furthest apart since the run began or was resumed. */
  readonly mismatch?: FurthestMismatch
}

/** The largest distance between trainer and sampler over the steps of a run. */
export interface FurthestMismatch {
  /** The largest divergence, in nats per token, and the step that had it. */
  readonly kl: number
  readonly step: number
  /** The smallest effective sample share under ratio weights. */
  readonly effectiveSampleShare: number
}

/** Rolls, learns and evaluates in turn; the number of steps is fixed, whatever the clock says. */
export async function runTraining<Data>(
  plan: TrainingPlan<Data>,
  parts: RollParts<Data>,
  trainer: Trainer,
): Promise<Training> {
  const signal = parts.signal ?? new AbortController().signal
  const keep = openKeeper(plan.out, trainer, signal)
  const state = plan.from ?? (await begin(plan, parts, keep))
  const { version } = await keep.restore(plan.from)
  if (plan.from) await parts.elsewhere?.resume(version ?? plan.from.version)
  const history = openHistory(version ?? state.version)
  if (state.tasks) plan.tasks.restore(state.tasks)
  if (state.shots !== undefined) parts.examples?.restore(state.shots)
  let { after, best = startOf(state, keep), sampledTokens, step: taken } = state
  const stops = openStops(plan.patience, version ?? state.version)
  const course: CourseStep[] = [...(plan.from ? await keep.course() : [])]
  let stopped: Stopped | undefined
  let mismatch: FurthestMismatch | undefined
  const first = state.step + 1
  await using steps = await openSteps(plan, parts, { trainer, signal, history, first })
  let unsaved: TrainingState | undefined
  for (let step = first; step <= plan.steps; step++) {
    const record = await steps.take(step).catch(async (error: unknown) => {
      // While attempts are made, the weights are still those of the last step.
      if (unsaved && !steps.isLearning()) await keep.rescue(unsaved)
      throw error
    })
    mismatch = furthest(mismatch, record)
    sampledTokens += record.sampledTokens
    parts.examples?.learn(record.success)
    taken = step
    await keep.metrics(record)
    parts.listen?.({ kind: 'curves', step, values: curvesOf(record) })
    plan.onStep?.(record)
    course.push({ ...record, ...record.metrics })
    if (stops.isIdle(record.version)) stopped = 'idle'
    const isEnd = step === plan.steps || plan.isEnough?.(record) === true || stopped !== undefined
    const isEvaluated = isEnd || step % (plan.evaluateEvery ?? Number.POSITIVE_INFINITY) === 0
    const known = after
    const { before } = state
    const now = { ...stateAt(record, plan, parts), before, sampledTokens }
    if (isEvaluated) {
      after = await evaluateAt(step, plan, parts).catch(async (error: unknown) => {
        if (!isEnd) await keep.rescue({ ...now, after: known, best })
        throw error
      })
    }
    if (isEvaluated && !isEnd && isSolved(known, after)) stopped = 'solved'
    const isLast = isEnd || stopped !== undefined
    const isBest = isEvaluated && isBetter(after, best)
    if (isBest) best = { step, success: after.success, ...keep.folderOf(step), ...splitOf(plan) }
    unsaved = { ...now, after, best }
    if (isBest || isLast || step % plan.checkpointEvery === 0) {
      await keep.checkpoint(unsaved)
      unsaved = undefined
    }
    if (isLast) break
  }
  const { before } = state
  return {
    before,
    after,
    steps: taken,
    sampledTokens,
    best,
    course: courseOf(course),
    ...(stopped && { stopped }),
    ...(mismatch && { mismatch }),
  }
}

/** What of a step is kept so that it can be gone on from. */
function stateAt<Data>(
  { step, version }: StepRecord,
  { tasks }: TrainingPlan<Data>,
  parts: RollParts<Data>,
): Pick<TrainingState, 'step' | 'version' | 'tasks'> {
  return { step, version, tasks: tasks.memory(), ...shotsOf(parts) }
}

/** The start, which is the best until a later step is better. */
function startOf({ before }: TrainingState, keep: Keeper): BestStep {
  return { step: 0, success: before.success, ...keep.folderOf(0) }
}

/** Whether a step is better than the best so far, or has just begun and is as good. */
function isBetter({ success }: Evaluation, best: BestStep): boolean {
  return success > best.success || (best.step === 0 && success > 0 && success === best.success)
}

function splitOf({
  heldOutSplit: split,
}: Pick<TrainingPlan, 'heldOutSplit'>): Pick<BestStep, 'split'> {
  return split === undefined ? {} : { split }
}

function furthest(
  known: FurthestMismatch | undefined,
  { step, metrics }: StepRecord,
): FurthestMismatch | undefined {
  const { mismatchKl: kl, mismatchEffectiveSampleShare: share } = metrics
  if (kl === undefined || share === undefined) return known
  const least = Math.min(share, known?.effectiveSampleShare ?? 1)
  return known && known.kl >= kl
    ? { ...known, effectiveSampleShare: least }
    : { kl, step, effectiveSampleShare: least }
}

/** The start of a run: its weights are kept and measured before anything is learned. */
async function begin<Data>(
  plan: TrainingPlan<Data>,
  parts: RollParts<Data>,
  keep: Keeper,
): Promise<TrainingState> {
  await keep.save(0)
  const before = await evaluateAt(0, plan, parts)
  if (before.scored === 0) refuseFailures('at a held-out task', before.failure)
  const state = { step: 0, version: 0, before, after: before, sampledTokens: 0 }
  await keep.state(state)
  return state
}

async function evaluateAt<Data>(
  step: number,
  plan: TrainingPlan<Data>,
  parts: RollParts<Data>,
): Promise<Evaluation> {
  const { successAt, tasksPerStep, heldOut, evaluateStrategy: strategy } = plan
  const seeded = { ...parts, seed: seedFor(parts, 'evaluation', step) }
  const evaluation = await evaluateHeldOut(heldOut, seeded, {
    name: `evaluation-${step}`,
    successAt,
    order: step * tasksPerStep,
    step,
    ...(strategy && { strategy }),
  })
  // Where agents bring their tasks, none are held out.
  if (heldOut.length === 0) return evaluation
  const { success, meanReward } = evaluation
  const values = { 'held-out/success': success, 'held-out/reward': meanReward }
  parts.listen?.({ kind: 'curves', step, values })
  plan.onEvaluation?.(evaluation, step)
  return evaluation
}

interface Stepping {
  readonly trainer: Trainer
  readonly signal: AbortSignal
  readonly history: VersionHistory
  /** The first step that is taken. */
  readonly first: number
}

interface Steps extends AsyncDisposable {
  take(step: number): Promise<StepRecord>
  /** Whether the weights may be between two steps. */
  isLearning(): boolean
}

/** Takes steps: rolls for each of them, or learns from what is rolled meanwhile. */
async function openSteps<Data>(
  plan: TrainingPlan<Data>,
  parts: RollParts<Data>,
  { trainer, signal, history, first }: Stepping,
): Promise<Steps> {
  const { maxStaleness = 0, onUpdate = 'abort' } = plan
  const fed = { ...plan, maxStaleness, onUpdate, history }
  const rolled = (): Feed | undefined =>
    maxStaleness > 0 ? openFeed(parts, { ...fed, first, last: plan.steps }) : undefined
  const feed = plan.feed ? await plan.feed(parts as RollParts, fed) : rolled()
  const inTurn = async (step: number): Promise<Fed> => {
    return { groups: await rollStep(step, plan, parts), refused: [], stale: 0 }
  }
  const change: ChangeWeights = work => {
    const everywhere = () => changeElsewhere(parts.elsewhere, work)
    return feed ? feed.change(everywhere) : everywhere()
  }
  let isLearning = false
  return {
    isLearning: () => isLearning,
    async take(step) {
      const started = performance.now()
      const fed = await (feed ? feed.take() : inTurn(step))
      const { stale } = fed
      const attempted = [...fed.groups, ...fed.refused]
      if (!attempted.some(group => group.members.length > 0)) {
        const unscored = attempted.flatMap(group => group.unscored)
        const [first] = reasonsUnscored({ unscored })
        refuseFailures(`of step ${step}`, first?.reason)
      }
      const off = readImportance(plan.importance ?? [])
      const groups = scaleBatch(fed.groups, parts).map(group =>
        weighImportance(group, off, history.newest()),
      )
      const rolled = performance.now()
      const staleness = stalenessOf(groups, history)
      const outcomes = attempted.map(group => outcomeOf(group, plan.successAt))
      plan.tasks.learn(outcomes.filter(({ attempts }) => attempts > 0))
      isLearning = true
      const { version, metrics, ...more } = await learnStep(groups, { trainer, change }, { signal })
      isLearning = false
      history.push(version)
      parts.listen?.({ kind: 'step-end', step, metrics })
      const seconds = {
        roll: (rolled - started) / 1000,
        learn: (performance.now() - rolled) / 1000,
      }
      const counts = countGroups(attempted, plan.successAt)
      const shots = shotsOf(parts)
      return { step, version, ...counts, ...shots, staleness, stale, seconds, metrics, more }
    },
    async [Symbol.asyncDispose]() {
      await feed?.[Symbol.asyncDispose]()
    },
  }
}

/** How many examples are shown before a task at the moment. */
function shotsOf({ examples }: Pick<RollParts, 'examples'>): Pick<StepRecord, 'shots'> {
  return examples ? { shots: examples.now.count } : {}
}

/** Ends training where every attempt failed outside the policy: going on would only lose time. */
function refuseFailures(attempts: string, failure: string | undefined): void {
  if (failure !== undefined) throw new Error(`No attempt ${attempts} could be scored: ${failure}`)
}

/** A step's groups, scaled over all of them where the comparison is over batches. */
function scaleBatch(
  groups: readonly Group[],
  { estimate: { batch }, weighting = 'uniform' }: Pick<RollParts, 'estimate' | 'weighting'>,
): readonly Group[] {
  if (!batch) return groups
  const scaled = batch.over(batch.spreadOf(groups.map(group => batch.rewardsOf(group, weighting))))
  return groups.map(group => comparedAnew(group, scaled, weighting))
}

/** A step's groups in the order of their tasks, whichever was complete first. */
async function rollStep<Data>(
  step: number,
  plan: TrainingPlan<Data>,
  parts: RollParts<Data>,
): Promise<readonly Group[]> {
  await using pipeline = openRollPipeline({ ...parts, seed: seedFor(parts, 'step', step) })
  const { tasksPerStep, refill, tasks } = plan
  const refills = (parts.filters?.length ?? 0) > 0 ? Math.floor(tasksPerStep * refill) : 0
  const start = (step - 1) * tasksPerStep
  // Refills are drawn besides the passes over all tasks, so that refilling one step does not shift the others.
  const placeOf = (index: number): number =>
    index < tasksPerStep ? start + index : -1 - (step - 1) * refills - (index - tasksPerStep)
  const orders = new Map<GroupId, number>()
  let begun = 0
  const taken = new Set<TaskId>()
  const submit = (): void => {
    const order = start + begun
    const task = tasks.at(placeOf(begun), taken)
    taken.add(task.id)
    const id = `${step}/${begun++}/${task.id}` as GroupId
    for (const seat of seatsOf(parts)) orders.set(seatGroup(id, seat), orders.size)
    pipeline.submit({ id, task, order, step })
  }
  for (let index = 0; index < tasksPerStep; index++) submit()
  const groups: Group[] = []
  while (pipeline.pending > 0) {
    const group = await pipeline.next()
    groups.push(group)
    const isLost = group.members.every(member => member.dropped !== null)
    if (isLost && begun < tasksPerStep + refills) submit()
  }
  return groups.sort((a, b) => orders.get(a.id)! - orders.get(b.id)!)
}

/** How the attempts at a group's task went. */
function outcomeOf({ task, members }: Group, successAt: number): TaskOutcome {
  const attempts = attemptMeans(
    members.map(({ tree, trajectory, reward }) => ({
      tree,
      share: trajectory.share,
      value: Number(reward.total >= successAt),
    })),
  )
  return { task, attempts: attempts.length, success: attempts.length === 0 ? 0 : mean(attempts) }
}

/** The numbers of a step under the names of their curves. */
function curvesOf({ metrics, seconds, staleness: _, more, ...record }: StepRecord) {
  const named: Readonly<Record<string, unknown>> = {
    ...record,
    ...metrics,
    ...more,
    'seconds.roll': seconds.roll,
    'seconds.learn': seconds.learn,
  }
  return Object.fromEntries(
    Object.entries(named).flatMap(([name, value]) =>
      typeof value === 'number' && Number.isFinite(value) ? [[`train/${name}`, value]] : [],
    ),
  )
}

function countGroups(groups: readonly Group[], successAt: number) {
  const members = groups.flatMap(group => group.members)
  const count = Math.max(1, members.length)
  const sum = (value: (member: (typeof members)[number]) => number): number =>
    members.reduce((total, member) => total + value(member), 0)
  const unscored = groups.flatMap(group => group.unscored)
  const usage = (kind: 'sampled' | 'prompt'): number =>
    [...members, ...unscored].reduce((total, { trajectory }) => total + trajectory.usage[kind], 0)
  return {
    reward: sum(({ reward }) => reward.total) / count,
    ...rewardBySeat(groups),
    success: sum(({ reward }) => Number(reward.total >= successAt)) / count,
    groups: groups.length,
    dropped: members.filter(member => member.dropped !== null).length,
    unscored: unscored.length,
    sampledTokens: usage('sampled'),
    promptTokens: usage('prompt'),
    turns: sum(({ trajectory }) => trajectory.turns.length) / count,
  }
}

function rewardBySeat(groups: readonly Group[]): Pick<StepRecord, 'rewardBySeat'> {
  const seats = [...new Set(groups.flatMap(({ seat }) => seat ?? []))].sort()
  if (seats.length < 2) return {}
  const rewardsOf = (seat: string): readonly number[] =>
    groups
      .filter(group => group.seat === seat)
      .flatMap(group => group.members.map(({ reward }) => reward.total))
  return { rewardBySeat: Object.fromEntries(seats.map(seat => [seat, mean(rewardsOf(seat))])) }
}

/** A seed of its own for each step and evaluation. */
function seedFor({ seed = 0 }: { readonly seed?: number }, kind: string, step: number): number {
  return seedOf(seed, kind, step).low >>> 1
}
