import type { Trainer } from '../../base/core/trainer.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { costOfTree } from '../../run/store/journal-index.ts'
import { listenAll } from '../../run/watch/events.ts'
import { turnMismatches } from '../../run/watch/sentinels/mismatch.ts'
import { type Evaluations, type Made, openEvaluations } from './evaluations.ts'
import type { Evaluation } from './held-out.ts'
import { type Keeper, makeKeeper } from './keeper.ts'
import { type Bookkeeper, type Interrupted, type Ledger, makeLedger } from './steps/ledger.ts'
import { makeHistory } from './steps/staleness.ts'
import { curvesOf, type StepRecord } from './steps/step-record.ts'
import { openSteps, refuseFailures, shotsOf } from './steps/steps.ts'
import type { TrainingPlan } from './training-plan.ts'
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
  /** That step's divergence turn by turn, if attempts have several; the eighth stands for all later ones too. */
  readonly byTurn?: readonly number[]
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
  const heard = { ...given, listen: listenAll(given.listen, ledger.listen) }
  const signal = heard.signal ?? new AbortController().signal
  const keep = makeKeeper(plan.out, trainer, signal)
  await using evaluations = openEvaluations(plan, heard)
  const parts = { ...heard, ...evaluations.shared }
  const state = plan.from ?? (await begin(evaluations, { keep, ledger }))
  const { version } = await keep.restore(plan.from)
  if (plan.from) await parts.elsewhere?.resume(version ?? plan.from.version)
  const history = makeHistory(version ?? state.version)
  restoreMemory(state, plan, parts)
  let { sampledTokens, step: taken } = state
  let standing: Standing = { after: state.after, best: state.best ?? startOf(state, plan, keep) }
  const stops = makeStops(plan.patience, version ?? state.version)
  const course: CourseStep[] = [...(plan.from ? await keep.course() : [])]
  const { before } = state
  let stopped: Stopped | undefined
  let mismatch: FurthestMismatch | undefined
  const first = state.step + 1
  const stepping = { trainer, signal, history, ledger, first, change: evaluations.change }
  await using steps = await openSteps(plan, parts, stepping)
  let unsaved: TrainingState | undefined
  for (let step = first; step <= plan.steps; step++) {
    // While attempts are made, the weights are still those of the last step.
    const last = (): TrainingState | undefined => (steps.isLearning() ? undefined : unsaved)
    const record = await steps.take(step).catch(rescuing(keep, last))
    mismatch = furthest(mismatch, record)
    sampledTokens += record.sampledTokens
    parts.examples?.learn(record.success)
    taken = step
    await tellStep(record, plan, { parts, keep })
    course.push({ ...record, ...record.metrics })
    if (stops.isIdle(record.version)) stopped = 'idle'
    const isEnd = step === plan.steps || plan.isEnough?.(record) === true || stopped !== undefined
    const place = { ...stateAt(record, plan, parts), ...steps.memory(), before, sampledTokens }
    const now = { ...place, ledger: ledger.read(), ...standing }
    const rescue = rescuing(keep, () => (isEnd ? undefined : now))
    const made = await evaluations.after(step, isEnd).catch(rescue)
    const newest = made.at(-1)
    if (!isEnd && newest && isSolved(standing.after, newest.evaluation)) stopped = 'solved'
    const isLast = isEnd || stopped !== undefined
    if (isLast && newest?.step !== step) made.push(...(await evaluations.after(step, true)))
    const { best } = standing
    standing = standingAfter(made, standing, { plan, keep })
    unsaved = { ...place, ledger: ledger.read(), ...standing }
    const isMeasured = standing.best !== best || evaluations.isOf(step)
    if (isMeasured || isLast || step % plan.checkpointEvery === 0) {
      await keep.checkpoint(unsaved)
      unsaved = undefined
    }
    if (isLast) break
  }
  return {
    before,
    ...standing,
    steps: taken,
    sampledTokens,
    course: courseOf(course),
    ...(stopped && { stopped }),
    ...(mismatch && { mismatch }),
    ledger: ledger.read(),
    waited: steps.waited(),
  }
}

/** Saves the last whole step, if there is one, before an error ends the run. */
function rescuing(keep: Keeper, last: () => TrainingState | undefined) {
  return async (error: unknown): Promise<never> => {
    const state = last()
    if (state) await keep.rescue(state)
    throw error
  }
}

function restoreMemory<Data>(
  { tasks, shots }: TrainingState,
  plan: TrainingPlan<Data>,
  { examples }: RollParts<Data>,
): void {
  if (tasks) plan.tasks.restore(tasks)
  if (shots !== undefined) examples?.restore(shots)
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

type Standing = Pick<TrainingState, 'after'> & { readonly best: BestStep }

/** The newest measurement and the best, after some more. */
function standingAfter<Data>(
  made: readonly Made[],
  known: Standing,
  { plan, keep }: { readonly plan: TrainingPlan<Data>; readonly keep: Keeper },
): Standing {
  let { after, best } = known
  for (const { step, evaluation } of made) {
    after = evaluation
    if (!isBetter(after, best)) continue
    best = { step, success: after.success, ...keep.folderOf(step), ...splitOf(plan) }
  }
  return { after, best }
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
    : { kl, step, ...byTurnOf(metrics), effectiveSampleShare: least }
}

function byTurnOf(metrics: StepRecord['metrics']): Pick<FurthestMismatch, 'byTurn'> {
  const byTurn = turnMismatches(metrics)
  return byTurn.length > 0 ? { byTurn } : {}
}

/** The start of a run: its weights are kept and measured before anything is learned. */
async function begin(
  evaluations: Evaluations,
  { keep, ledger }: { readonly keep: Keeper; readonly ledger: Bookkeeper },
): Promise<TrainingState> {
  await keep.save(0)
  const before = await evaluations.measure(0)
  if (before.scored === 0) refuseFailures('at a held-out task', before.failure)
  const begun = { step: 0, version: 0, sampledTokens: 0, ledger: ledger.read() }
  const state = { ...begun, before, after: before }
  await keep.state(state)
  return state
}
