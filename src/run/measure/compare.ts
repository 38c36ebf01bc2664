import { readManifest } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import type { RunByTask } from './compare-tasks.ts'

/** Reads the means of a run by task; groups of one task are taken together. */
export async function readByTask(
  run: string,
  options: { readonly successAt?: number } = {},
): Promise<RunByTask> {
  const { config } = await readManifest(run)
  const at = options.successAt ?? (typeof config.successAt === 'number' ? config.successAt : 1)
  const sums = new Map<string, { success: number; reward: number; tokens: number; count: number }>()
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) {
    const sum = sums.get(group.task) ?? { success: 0, reward: 0, tokens: 0, count: 0 }
    for (const { reward, trajectory } of group.members) {
      sum.success += Number(reward.total >= at - 1e-9)
      sum.reward += reward.total
      sum.tokens += trajectory.usage.sampled
      sum.count++
    }
    if (sum.count > 0) sums.set(group.task, sum)
  }
  const tasks = [...sums].map(([task, { success, reward, tokens, count }]) => {
    const means = { success: success / count, reward: reward / count, tokens: tokens / count }
    return [task, { ...means, attempts: count }] as const
  })
  return { run, tasks: new Map(tasks) }
}
