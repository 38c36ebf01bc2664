import { isHeldOut } from '../../../base/core/group.ts'
import { mean } from '../../../base/math/statistics.ts'
import type { Alarm, Sentinel } from './sentinel.ts'

/** Steps at either end that are compared, and how often each task was tried at least. */
const [window, tries] = [8, 3]

/** Training success has risen by this much, and held-out success by less than a third of it. */
const clear = 0.25

/**
 * Warns if a policy solves its own tasks far more often than before, and held-out ones hardly. The mean of the last two
 * measurements counts, since one may be low by chance.
 */
export function learnedByHeart(): Sentinel {
  const own: number[] = []
  const measured: number[] = []
  const tasks = new Set<string>()
  let groups = 0
  let isOver = false
  const judge = (): Alarm | undefined => {
    if (own.length < 2 * window || measured.length < 3 || groups < tries * tasks.size) return
    const [first, last] = [mean(own.slice(0, window)), mean(own.slice(-window))]
    const [before, now] = [measured[0]!, mean(measured.slice(-2))]
    if (last - first < clear || now - before > (last - first) / 3) return
    isOver = true
    return {
      message:
        `success on its own ${tasks.size} tasks rose from ${first.toFixed(2)} to ${last.toFixed(2)}, ` +
        `on held-out tasks it went from ${before.toFixed(2)} to ${now.toFixed(2)}`,
      likely: `the tasks are learned by heart, each was tried in ${Math.floor(groups / tasks.size)} groups: more tasks, then fewer --steps or --epochs; the best weights so far are kept`,
    }
  }
  return {
    name: 'learned-by-heart',
    seeGroup(group): undefined {
      if (isOver || isHeldOut(group)) return
      groups++
      tasks.add(group.task)
    },
    seeCurves(values): Alarm | undefined {
      if (isOver) return
      const trained = values['train/success']
      if (trained !== undefined) own.push(trained)
      const heldOut = values['held-out/success']
      if (heldOut === undefined) return
      measured.push(heldOut)
      return judge()
    },
  }
}
