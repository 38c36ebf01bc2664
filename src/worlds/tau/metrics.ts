import { divideInts, formatFloat } from '@espalier/text/python'

/** What the metrics need of one attempt. */
export interface TauTrial {
  readonly taskId: number
  readonly trial: number
  readonly reward: number
}

/** tau-bench's own metrics. */
export interface TauMetrics {
  readonly averageReward: number
  /** pass^k for k from 1: the chance that k attempts at a task all succeed, averaged over tasks. */
  readonly passHat: readonly number[]
}

/** Whether an attempt was successful: a reward of 1, give or take rounding. */
function isSuccessful(reward: number): boolean {
  return 1 - 1e-6 <= reward && reward <= 1 + 1e-6
}

/** Computes the metrics in the order of operations of the original, so that every digit agrees. */
export function measure(attempts: readonly TauTrial[]): TauMetrics {
  if (attempts.length === 0) throw new Error('There are no attempts to measure.')
  const trials = new Set(attempts.map(attempt => attempt.trial)).size
  const successes = new Map<number, number>()
  let total = 0
  for (const { taskId, reward } of attempts) {
    total += reward
    successes.set(taskId, (successes.get(taskId) ?? 0) + (isSuccessful(reward) ? 1 : 0))
  }
  const passHat = Array.from({ length: trials }, (_, index) => {
    const k = index + 1
    const all = choose(trials, k)
    let sum = 0
    for (const count of successes.values()) sum += divideInts(choose(count, k), all)
    return sum / successes.size
  })
  return { averageReward: total / attempts.length, passHat }
}

/** The binomial coefficient. */
function choose(from: number, count: number): bigint {
  if (count > from) return 0n
  let result = 1n
  for (let index = 1; index <= count; index++) {
    result = (result * BigInt(from - count + index)) / BigInt(index)
  }
  return result
}

/** The metrics as the original prints them. */
export function formatMetrics({ averageReward, passHat }: TauMetrics): string {
  const lines = passHat.map((value, index) => `  k=${index + 1}: ${formatFloat(value)}`)
  return `🏆 Average reward: ${formatFloat(averageReward)}\n📈 Pass^k\n${lines.join('\n')}\n`
}
