import { succeeds } from '../../../base/math/attempts.ts'
import { compareRuns, type RunByTask, type TaskMeans } from '../../../run/measure/compare-tasks.ts'
import type { ComparisonAnswer, GroupRow, PairRow, PairSide, SideAnswer } from '../answers.ts'

/** A side of a comparison, with its groups. */
export interface Side extends SideAnswer {
  readonly rows: readonly GroupRow[]
  readonly successAt: number
}

/** Whether somebody who does not learn played this group's seat; the page loads this, and cannot load core/group.ts. */
export function isOfAnother({ reasons }: GroupRow): boolean {
  return reasons.some(reason => reason.startsWith('seat: '))
}

interface TaskSide extends TaskMeans {
  readonly group: string
}

/** The groups of a side: those of one evaluation, or all that were rolled, or all there are. */
export function rowsOfSide(rows: readonly GroupRow[], step: number | null): readonly GroupRow[] {
  if (step !== null) return rows.filter(row => row.isEvaluation && row.step === step)
  const rolled = rows.filter(row => !row.isEvaluation && !isOfAnother(row))
  return rolled.length > 0 ? rolled : rows
}

/** Means by task; groups of one task are taken together, and the first of them is linked. */
function byTask({ rows, successAt }: Side): ReadonlyMap<string, TaskSide> {
  const tasks = new Map<string, { group: string; rewards: number[]; tokens: number[] }>()
  for (const row of rows) {
    if (row.rewards.length === 0) continue
    const sofar = tasks.get(row.task) ?? { group: row.id, rewards: [], tokens: [] }
    sofar.rewards.push(...row.rewards)
    if (row.tokens !== null) sofar.tokens.push(row.tokens)
    tasks.set(row.task, sofar)
  }
  return new Map(
    [...tasks].map(([task, { group, rewards, tokens }]) => [
      task,
      {
        group,
        success: mean(rewards.map(reward => Number(succeeds(reward, successAt)))),
        reward: mean(rewards),
        tokens: mean(tokens),
        attempts: rewards.length,
      },
    ]),
  )
}

/** Two sides task by task: first tasks that changed between solved and failed, then by the change of reward. */
export function compareSides(
  before: Side,
  after: Side,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): ComparisonAnswer {
  const [left, right] = [byTask(before), byTask(after)]
  const runOf = (tasks: ReadonlyMap<string, TaskSide>, { title, successAt }: Side): RunByTask => ({
    run: title,
    successAt,
    tasks,
  })
  const { success, reward, tokens, unpaired, gained, lost, tasks } = compareRuns(
    runOf(left, before),
    runOf(right, after),
  )
  const changes = new Map<string, PairRow['change']>([
    ...gained.map(task => [task, 'gained'] as const),
    ...lost.map(task => [task, 'lost'] as const),
  ])
  const pairs = [...left]
    .filter(([task]) => right.has(task))
    .map(([task, side]) => toPair(task, [side, right.get(task)!], changes.get(task) ?? 'same'))
    .sort(byChange)
  const sideOf = ({ run, step, title }: Side): SideAnswer => ({ run, step, title })
  return {
    before: sideOf(before),
    after: sideOf(after),
    tasks,
    unpaired,
    success,
    reward,
    tokens,
    gained: gained.length,
    lost: lost.length,
    total: pairs.length,
    offset,
    pairs: pairs.slice(offset, offset + limit),
  }
}

function toPair(
  task: string,
  [before, after]: readonly [TaskSide, TaskSide],
  change: PairRow['change'],
): PairRow {
  const side = ({ success, reward, tokens, attempts, group }: TaskSide): PairSide => ({
    success,
    reward,
    tokens,
    attempts,
    group,
  })
  return {
    task,
    before: side(before),
    after: side(after),
    change,
    difference: after.reward - before.reward,
  }
}

const places: readonly PairRow['change'][] = ['lost', 'gained', 'same']

function byChange(a: PairRow, b: PairRow): number {
  return (
    places.indexOf(a.change) - places.indexOf(b.change) ||
    Math.abs(b.difference) - Math.abs(a.difference) ||
    a.task.localeCompare(b.task, 'en', { numeric: true })
  )
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}
