import { setMaxListeners } from 'node:events'
import { makeLanes } from '../../base/core/lane.ts'
import type { Policy } from '../../base/core/policy.ts'
import { makeWeightsGate } from '../../run/run/pause.ts'
import { laneLimits, type RollParts, rolloutsOf } from '../../run/run/roll-groups.ts'
import { withoutUndefined } from '../../run/settings/settings.ts'
import { type Evaluation, evaluateHeldOut } from './held-out.ts'
import { seedFor, type TrainingPlan } from './training-plan.ts'

/** Held-out tasks as a step left the policy. */
export interface Made {
  readonly step: number
  readonly evaluation: Evaluation
}

/** Measures the held-out tasks of a training run. */
export interface Evaluations extends AsyncDisposable {
  /** What training shares with measurements that are made beside it. */
  readonly shared: Pick<RollParts, 'lanes'>
  /** Measures the weights of now. */
  measure(step: number): Promise<Evaluation>
  /** The measurements that there are after a step; at the end, that of the end is the last of them. */
  after(step: number, isEnd: boolean): Promise<Made[]>
  /** Whether the weights of a step are being measured, so that they have to be kept. */
  isOf(step: number): boolean
  /** Runs what changes the weights while nothing is measured of them. */
  change<T>(work: () => Promise<T>): Promise<T>
}

/** Opens the measurements of a run: training waits for them, or with `evaluateBeside` goes on meanwhile. */
export function openEvaluations<Data>(
  plan: TrainingPlan<Data>,
  parts: RollParts<Data>,
): Evaluations {
  const isDue = (step: number): boolean =>
    step % (plan.evaluateEvery ?? Number.POSITIVE_INFINITY) === 0
  const measure = (step: number): Promise<Evaluation> => evaluateAt(step, plan, parts)
  if (plan.evaluateBeside) return makeBeside(plan, parts, { isDue, measure })
  return {
    shared: {},
    measure,
    async after(step, isEnd) {
      return isEnd || isDue(step) ? [{ step, evaluation: await measure(step) }] : []
    },
    isOf: () => false,
    change: work => work(),
    [Symbol.asyncDispose]: async () => {},
  }
}

/** Attempts beside training: this part of those that it may have open. */
const besideShare = 1 / 4

/**
 * Measures beside training, one step after another: a step that falls due meanwhile is measured when its turn comes, by
 * the weights of then. Weights inside are copied, so that each measurement is of one step; others change while it goes on.
 */
function makeBeside<Data>(
  plan: TrainingPlan<Data>,
  parts: RollParts<Data>,
  { isDue, measure }: { isDue(step: number): boolean; measure(step: number): Promise<Evaluation> },
): Evaluations {
  const lanes = makeLanes(laneLimits(parts))
  const gate = makeWeightsGate(plan.onUpdate ?? 'abort')
  const stop = new AbortController()
  const signal = AbortSignal.any([stop.signal, ...(parts.signal ? [parts.signal] : [])])
  setMaxListeners(0, signal)
  const { elsewhere: _, adaptive: __, instruments = [], ...rest } = parts
  const open = Math.max(1, Math.floor(rolloutsOf(parts) * besideShare))
  const concurrency = { ...laneLimits(parts), rollouts: open }
  const beside = { ...rest, lanes, concurrency, signal }
  let wanted = false
  let running: { readonly step: number; readonly work: Promise<Made> } | undefined
  let ended: PromiseSettledResult<Made> | undefined

  async function make(step: number, held: Policy | undefined): Promise<Made> {
    await using policy = held
    const own = policy
      ? { ...beside, policy, instruments }
      : { ...beside, instruments: [gate.instrument, ...instruments] }
    return { step, evaluation: await evaluateAt(step, plan, own) }
  }
  async function begin(step: number): Promise<void> {
    wanted = false
    const work = make(step, await parts.policy.inside?.copy())
    running = { step, work }
    void Promise.allSettled([work]).then(([result]) => {
      ended = result
    })
  }
  function take(): Made[] {
    if (!ended) return []
    const result = ended
    ended = running = undefined
    if (result.status === 'rejected') throw result.reason
    return [result.value]
  }
  parts.listen?.({ kind: 'lanes-open', lanes })
  return {
    shared: { lanes },
    measure,
    async after(step, isEnd) {
      if (isEnd) await running?.work
      const made = take()
      if (isEnd) return [...made, { step, evaluation: await measure(step) }]
      wanted ||= isDue(step)
      if (wanted && !running) await begin(step)
      return made
    },
    isOf: step => running?.step === step,
    change: gate.change,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('training has ended'))
      await Promise.allSettled([running?.work])
      parts.listen?.({ kind: 'lanes-close', lanes })
    },
  }
}

async function evaluateAt<Data>(
  step: number,
  plan: TrainingPlan<Data>,
  parts: RollParts<Data>,
): Promise<Evaluation> {
  const { successAt, tasksPerStep, heldOut, evaluateStrategy: strategy, environmentOf } = plan
  const own = withoutUndefined({ temperature: plan.evaluateTemperature })
  const sampling = { ...parts.sampling, ...own }
  const seeded = { ...parts, sampling, seed: seedFor(parts, 'evaluation', step) }
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
