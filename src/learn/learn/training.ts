import type { Trainer } from '../../base/core/trainer.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { listenAll } from '../../run/watch/events.ts'
import { type Evaluation, evaluateHeldOut } from './held-out.ts'
import { type Keeper, openKeeper } from './keeper.ts'
import { type Ledger, openLedger } from './steps/ledger.ts'
import { openHistory } from './steps/staleness.ts'
import { curvesOf, type StepRecord } from './steps/step-record.ts'
import { openSteps, refuseFailures } from './steps/steps.ts'
import { seedFor, type TrainingPlan } from './training-plan.ts'
import type { BestStep, TrainingState } from './training-state.ts'

/** The result of training. */
export interface Training {
  readonly before: Evaluation
  readonly after: Evaluation
  /** Steps that were taken, by an earlier sitting too. */
  readonly steps: number
  readonly sampledTokens: number
  /** The best evaluation after the start. */
  readonly best: BestStep
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
  const ledger = openLedger(plan.from?.ledger)
  const parts = { ...given, listen: listenAll(given.listen, ledger.listen) }
  const signal = parts.signal ?? new AbortController().signal
  const keep = openKeeper(plan.out, trainer, signal)
  const state = plan.from ?? (await begin(plan, parts, keep))
  const { version } = await keep.restore(plan.from)
  if (plan.from) await parts.elsewhere?.resume(version ?? plan.from.version)
  const history = openHistory(version ?? state.version)
  if (state.tasks) plan.tasks.restore(state.tasks)
  let { after, best, sampledTokens, step: taken } = state
  let mismatch: FurthestMismatch | undefined
  const seconds = { roll: 0, learn: 0 }
  const first = state.step + 1
  await using steps = openSteps(plan, parts, { trainer, signal, history, ledger, first })
  let unsaved: TrainingState | undefined
  for (let step = first; step <= plan.steps; step++) {
    const record = await steps.take(step).catch(async (error: unknown) => {
      // While attempts are made, the weights are still those of the last step.
      if (unsaved && !steps.isLearning()) await keep.rescue(unsaved)
      throw error
    })
    mismatch = furthest(mismatch, record)
    seconds.roll += record.seconds.roll
    seconds.learn += record.seconds.learn
    sampledTokens += record.sampledTokens
    taken = step
    await keep.metrics(record)
    parts.listen?.({ kind: 'curves', step, values: curvesOf(record) })
    plan.onStep?.(record)
    const isLast = step === plan.steps || plan.isEnough?.(record) === true
    const isEvaluated = isLast || step % (plan.evaluateEvery ?? Number.POSITIVE_INFINITY) === 0
    if (isEvaluated) after = await evaluateAt(step, plan, parts)
    const isBest = isEvaluated && after.success > (best?.success ?? -1)
    if (isBest) best = { step, success: after.success, ...keep.folderOf(step), ...splitOf(plan) }
    const tasks = plan.tasks.memory()
    const { before } = state
    const measured = { before, after, sampledTokens, ledger: ledger.read(), ...(best && { best }) }
    unsaved = { step, version: record.version, tasks, ...measured }
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
    best: best ?? { step: 0, success: before.success },
    ...(mismatch && { mismatch }),
    ledger: ledger.read(),
    waited: seconds.roll / (seconds.roll + seconds.learn || 1),
  }
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
  const { success, meanReward } = evaluation
  const values = { 'held-out/success': success, 'held-out/reward': meanReward }
  parts.listen?.({ kind: 'curves', step, values })
  plan.onEvaluation?.(evaluation, step)
  return evaluation
}
