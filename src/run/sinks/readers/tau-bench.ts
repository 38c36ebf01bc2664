import type { Json } from '../../../base/core/ids.ts'
import type { Fields } from '../fields.ts'
import { type FormatReader, plainReward, type ReadTrajectory, unknownParts } from '../reader.ts'
import { readMessages } from './messages.ts'

/**
 * tau-bench's results. The original writes them trial by trial; here the trials of one task become
 * one group. There are no tokens in them: without a model the run has messages and rewards only.
 */
export const tauBenchReader: FormatReader = {
  name: 'tau-bench',
  kind: 'array',
  async *read(records) {
    const tasks = new Map<number, Map<number, ReadTrajectory>>()
    for await (const result of records) {
      const task = result.integer('task_id')
      const trials = tasks.get(task) ?? new Map<number, ReadTrajectory>()
      tasks.set(task, trials)
      let member = result.has('trial') ? result.integer('trial') : 0
      // Files put together may hold a trial twice; both are kept.
      if (trials.has(member)) member = Math.max(...trials.keys()) + 1
      trials.set(member, readResult(result, member))
    }
    for (const trials of tasks.values()) {
      yield* [...trials.values()].sort((a, b) => a.member - b.member)
    }
  },
}

function readResult(result: Fields, member: number): ReadTrajectory {
  const task = String(result.integer('task_id'))
  const info = result.has('info') ? result.inner('info') : undefined
  const messages = readMessages(result, 'traj')
  const read = {
    ...unknownParts,
    group: task,
    task,
    data: info?.value.task ?? null,
    member,
    paths: [],
    messages,
    fidelity: { kind: 're-encoded', forks: [] },
  } as const
  if (messages.length > 0) return { ...read, ...readScore(result, info) }
  const message = info?.has('error') ? String(info.value.error) : 'no conversation'
  return { ...read, reward: null, outcome: { kind: 'failed', boundary: 'environment', message } }
}

/** The reward and the account of it, which the run keeps as the world's report. */
function readScore(
  result: Fields,
  info: Fields | undefined,
): Pick<ReadTrajectory, 'reward' | 'report'> {
  const reward = plainReward(result.number('reward'))
  if (!info?.has('task')) return { reward }
  const { task, source = null, user_cost = null, reward_info = null } = info.value
  const index = result.integer('task_id')
  return { reward, report: { index, task, source, user_cost, reward_info } as Json }
}
