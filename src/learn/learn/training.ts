import type { Trainer } from '../../base/core/trainer.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { costOfTree } from '../../run/store/journal-index.ts'
import { listenAll } from '../../run/watch/events.ts'
import { type Evaluation, evaluateHeldOut } from './held-out.ts'
import { type Keeper, makeKeeper } from './keeper.ts'
import { type Bookkeeper, type Interrupted, type Ledger, makeLedger } from './steps/ledger.ts'
import { makeHistory } from './steps/staleness.ts'
import { curvesOf, type StepRecord } from './steps/step-record.ts'
import { openSteps, refuseFailures, shotsOf } from './steps/steps.ts'
import { seedFor, type TrainingPlan } from './training-plan.ts'
import type { BestStep, TrainingState } from './training-state.ts'
import { type Course, type CourseStep, courseOf } from './verdict/course.ts'
import { isSolved, makeStops, type Stopped } from './verdict/stops.ts'

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
  /** What became of every token that was sampled. */
  readonly ledger: Ledger
  /** The share of the steps' time that the trainer waited for groups, since the run began or was resumed. */
  readonly waited: number
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
  given: RollParts<Data>,
  trainer: Trainer,
): Promise<Training> {
  const ledger = makeLedger(plan.from?.ledger, interruptedIn(given))
  const parts = { ...given, listen: listenAll(given.listen, ledger.listen) }
  const signal = parts.signal ?? new AbortController().signal
  const keep = makeKeeper(plan.out, trainer, signal)
  const state = plan.from ?? (await begin(plan, parts, { keep, ledger }))
  const { version } = await keep.restore(plan.from)
  if (plan.from) await parts.elsewhere?.resume(version ?? plan.from.version)
  const history = makeHistory(version ?? state.version)
  if (state.tasks) plan.tasks.restore(state.tasks)
  if (state.shots !== undefined) parts.examples?.restore(state.shots)
  let { after, best = startOf(state, plan, keep), sampledTokens, step: taken } = state
  const stops = makeStops(plan.patience, version ?? state.version)
  const course: CourseStep[] = [...(plan.from ? await keep.course() : [])]
  const { before } = state
  let stopped: Stopped | undefined
  let mismatch: FurthestMismatch | undefined
  const first = state.step + 1
  await using steps = await openSteps(plan, parts, { trainer, signal, history, ledger, first })
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
    await tellStep(record, plan, { parts, keep })
    course.push({ ...record, ...record.metrics })
    if (stops.isIdle(record.version)) stopped = 'idle'
    const isEnd = step === plan.steps || plan.isEnough?.(record) === true || stopped !== undefined
    const isEvaluated = isEnd || step % (plan.evaluateEvery ?? Number.POSITIVE_INFINITY) === 0
    const known = after
    const place = { ...stateAt(record, plan, parts), ...steps.memory() }
    const now = { ...place, before, sampledTokens, ledger: ledger.read() }
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
    unsaved = { ...now, ledger: ledger.read(), after, best }
    if (isBest || isLast || step % plan.checkpointEvery === 0) {
      await keep.checkpoint(unsaved)
      unsaved = undefined
    }
    if (isLast) break
  }
  return {
    before,
    after,
    steps: taken,
    sampledTokens,
    best,
    course: courseOf(course),
    ...(stopped && { stopped }),
    ...(mismatch && { mismatch }),
    ledger: ledger.read(),
    waited: steps.waited(),
  }
}

function interruptedIn<Data>({
  everSampled,
  known = new Map(),
}: RollParts<Data>): Interrupted | undefined {
  if (everSampled === undefined) return undefined
  const kept = [...known.values()].map(tree => costOfTree(tree).sampled)
  return { everSampled, kept: kept.reduce((sum, tokens) => sum + tokens, 0) }
}

async function tellStep<Data>(
  record: StepRecord,
  plan: TrainingPlan<Data>,
  { parts, keep }: { readonly parts: RollParts<Data>; readonly keep: Keeper },
): Promise<void> {
  await keep.metrics(record)
  parts.listen?.({ kind: 'curves', step: record.step, values: curvesOf(record) })
  plan.onStep?.(record)
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
function startOf(
  { before }: TrainingState,
  plan: Pick<TrainingPlan, 'heldOutSplit'>,
  keep: Keeper,
): BestStep {
  return { step: 0, success: before.success, ...keep.folderOf(0), ...splitOf(plan) }
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
  { keep, ledger }: { readonly keep: Keeper; readonly ledger: Bookkeeper },
): Promise<TrainingState> {
  await keep.save(0)
  const before = await evaluateAt(0, plan, parts)
  if (before.scored === 0) refuseFailures('at a held-out task', before.failure)
  const begun = { step: 0, version: 0, sampledTokens: 0, ledger: ledger.read() }
  const state = { ...begun, before, after: before }
  await keep.state(state)
  return state
}

async function evaluateAt<Data>(
  step: number,
  plan: TrainingPlan<Data>,
  parts: RollParts<Data>,
): Promise<Evaluation> {
  const { successAt, tasksPerStep, heldOut, evaluateStrategy: strategy, environmentOf } = plan
  const seeded = { ...parts, seed: seedFor(parts, 'evaluation', step) }
  const evaluation = await evaluateHeldOut(heldOut, seeded, {
    name: `evaluation-${step}`,
    successAt,
    order: step * tasksPerStep,
    step,
    ...(strategy && { strategy }),
    ...(environmentOf && { environmentOf }),
  })
  // If agents bring their tasks, none are held out.
  if (heldOut.length === 0) return evaluation
  const values = heldOutCurves(evaluation)
  parts.listen?.({ kind: 'curves', step, values })
  plan.onEvaluation?.(evaluation, step)
  return evaluation
}

function heldOutCurves({ success, meanReward, byEnvironment = {} }: Evaluation) {
  const each = Object.entries(byEnvironment).flatMap(([name, own]) => [
    [`held-out/success/${name}`, own.success] as const,
    [`held-out/reward/${name}`, own.meanReward] as const,
  ])
  const all = { 'held-out/success': success, 'held-out/reward': meanReward }
  return { ...all, ...Object.fromEntries(each) }
}
