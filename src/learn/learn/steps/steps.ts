import { steadySeconds } from '../../../base/core/call.ts'
import { type Group, reasonsUnscored } from '../../../base/core/group.ts'
import { type GroupId, seatGroup, type TaskId } from '../../../base/core/ids.ts'
import type { Trainer } from '../../../base/core/trainer.ts'
import { comparedAnew } from '../../../engine/weigh/batch-scale.ts'
import { readImportance, weighImportance } from '../../../engine/weigh/importance.ts'
import { changeElsewhere } from '../../../run/run/elsewhere.ts'
import { seatsOf } from '../../../run/run/pipeline.ts'
import { openRollPipeline, type RollParts } from '../../../run/run/roll-groups.ts'
import type { EnvironmentOf } from '../../../run/tasks/mixed-tasks.ts'
import { type ChangeWeights, learnStep } from '../learn-step.ts'
import { seedFor, type TrainingPlan } from '../training-plan.ts'
import type { TrainingState } from '../training-state.ts'
import { type Fed, type Feed, openFeed } from './feed.ts'
import type { Bookkeeper } from './ledger.ts'
import { stalenessOf, type VersionHistory } from './staleness.ts'
import {
  countGroups,
  outcomeOf,
  partition,
  type StepRecord,
  stepByEnvironment,
} from './step-record.ts'

/** What steps are taken with. */
interface Stepping {
  readonly trainer: Trainer
  readonly signal: AbortSignal
  readonly history: VersionHistory
  readonly ledger: Bookkeeper
  /** The first step that is taken. */
  readonly first: number
  /** Put around every change of the weights, for what else samples from them. */
  change<T>(work: () => Promise<T>): Promise<T>
}

/** Steps, one after the other. */
export interface Steps extends AsyncDisposable {
  take(step: number): Promise<StepRecord>
  /** What of the feed is kept with a checkpoint. */
  memory(): Pick<TrainingState, 'feed'>
  /** Whether the weights may be between two steps. */
  isLearning(): boolean
  /** The share of the time so far that the trainer waited for groups. */
  waited(): number
}

/** Takes steps: rolls for each of them, or learns from what is rolled meanwhile. */
export async function openSteps<Data>(
  plan: TrainingPlan<Data>,
  parts: RollParts<Data>,
  { trainer, signal, history, ledger, first, change: around }: Stepping,
): Promise<Steps> {
  const { maxStaleness = 0, lookAhead = maxStaleness, onUpdate = 'abort' } = plan
  const { clock = steadySeconds } = plan
  const last = plan.steps
  const far = { maxStaleness, lookAhead, onUpdate, history, first, last, clock }
  const rolled = (): Feed | undefined =>
    maxStaleness > 0 ? openFeed(parts, { ...plan, ...far, before: plan.from?.feed }) : undefined
  const feed = plan.feed ? await plan.feed(parts as RollParts, { ...plan, ...far }) : rolled()
  const inTurn = async (step: number): Promise<Fed> => {
    return { groups: await rollStep(step, plan, parts), refused: [], stale: [] }
  }
  const change: ChangeWeights = work => {
    const everywhere = () => around(() => changeElsewhere(parts.elsewhere, work))
    return feed ? feed.change(everywhere) : everywhere()
  }
  let isLearning = false
  const spent = { roll: 0, learn: 0 }
  return {
    memory: () => (feed?.memory ? { feed: feed.memory() } : {}),
    isLearning: () => isLearning,
    waited: () => spent.roll / (spent.roll + spent.learn || 1),
    async take(step) {
      const started = clock()
      // What was rolled ahead may suffice for a step that nobody wants any more.
      signal.throwIfAborted()
      const fed = await (feed ? feed.take() : inTurn(step))
      const attempted = [...fed.groups, ...fed.refused]
      if (!attempted.some(group => group.members.length > 0)) {
        const unscored = attempted.flatMap(group => group.unscored)
        const [first] = reasonsUnscored({ unscored })
        refuseFailures(`of step ${step}`, first?.reason)
      }
      const off = readImportance(plan.importance ?? [])
      const groups = scaleBatch(fed.groups, parts, plan.environmentOf).map(group =>
        weighImportance(group, off, history.newest()),
      )
      const rolled = clock()
      const staleness = stalenessOf(groups, history)
      plan.tasks.learn(attempted.map(group => outcomeOf(group, plan.successAt)))
      ledger.settle(attempted, fed.stale)
      isLearning = true
      const { version, metrics, ...more } = await learnStep(groups, { trainer, change }, { signal })
      isLearning = false
      history.push(version)
      const seconds = { roll: rolled - started, learn: clock() - rolled }
      spent.roll += seconds.roll
      spent.learn += seconds.learn
      const ahead = fed.ahead && { ...fed.ahead, ...aheadOf(fed, seconds), maxStaleness }
      parts.listen?.({ kind: 'step-end', step, metrics, ...(ahead && { ahead }) })
      const counts = countGroups(attempted, plan.successAt)
      const age = { staleness, stale: fed.stale.length, ...(fed.isOffPolicy && offPolicy) }
      const times = { ...age, seconds, ...(ahead && { ahead }) }
      const shown = { ...counts, ...stepByEnvironment(attempted, plan), ...shotsOf(parts) }
      return { step, version, ...shown, ...times, ledger: ledger.read(), metrics, more }
    },
    async [Symbol.asyncDispose]() {
      await feed?.[Symbol.asyncDispose]()
    },
  }
}

const offPolicy = { offPolicy: true } as const

/** How many examples are shown before a task at the moment. */
export function shotsOf({ examples }: Pick<RollParts, 'examples'>): Pick<StepRecord, 'shots'> {
  return examples ? { shots: examples.now.count } : {}
}

function aheadOf({ groups, refused, stale }: Fed, { roll, learn }: StepRecord['seconds']) {
  return {
    groups: groups.length + refused.length,
    stale: stale.map(({ task }) => task),
    seconds: roll + learn,
  }
}

/** Ends training if every attempt failed outside the policy: going on would only lose time. */
export function refuseFailures(attempts: string, failure: string | undefined): void {
  if (failure !== undefined) throw new Error(`No attempt ${attempts} could be scored: ${failure}`)
}

/**
 * A step's groups, scaled over all of them if the comparison is over batches: over those of one environment,
 * since the rewards of several have no common scale.
 */
function scaleBatch(
  groups: readonly Group[],
  { estimate: { batch }, weighting = 'uniform' }: Pick<RollParts, 'estimate' | 'weighting'>,
  environmentOf: EnvironmentOf | undefined,
): readonly Group[] {
  if (!batch) return groups
  const anew = new Map<Group, Group>()
  for (const own of partition(groups, environmentOf).values()) {
    const scaled = batch.over(batch.spreadOf(own.map(group => batch.rewardsOf(group, weighting))))
    for (const group of own) anew.set(group, comparedAnew(group, scaled, weighting))
  }
  return groups.map(group => anew.get(group)!)
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
