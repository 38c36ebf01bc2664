import { textOf } from '@espalier/text'
import { type Group, glanceAt, isHeldOut } from '../../../base/core/group.ts'
import { isSampled } from '../../../base/core/segment.ts'
import { isGradable, type Trajectory } from '../../../base/core/trajectory.ts'
import type { Tree } from '../../../base/core/tree.ts'
import { mean } from '../../../base/math/statistics.ts'
import type { Alarm, Sentinel } from './sentinel.ts'

const window = 64

/** The first and the last values of a series. */
function makeWindows() {
  const first: number[] = []
  let last: number[] = []
  return {
    add(value: number): void {
      if (first.length < window) first.push(value)
      last.push(value)
      if (last.length >= 2 * window) last = last.slice(-window)
    },
    /** The means of both, once they do not overlap. */
    means(total: number): { readonly first: number; readonly last: number } | undefined {
      if (total < 2 * window) return undefined
      return { first: mean(first), last: mean(last.slice(-window)) }
    },
  }
}

/**
 * Warns if the policy stopped exploring before it was good. A policy that solves its tasks may be
 * certain.
 */
export function entropyCollapse(): Sentinel {
  const rewards = makeRewards()
  const drift = drifting('entropy-collapse', surpriseOf, (first, last) =>
    last < 0.05 && last < first / 10 && !rewards.isGood()
      ? {
          message: `surprise per sampled token fell from ${first.toFixed(3)} to ${last.toFixed(3)}, at a mean reward of ${rewards.mean().toFixed(2)}`,
          likely:
            'the policy has become certain before it was good: raise the entropy bonus or the temperature, lower the learning rate, or go back to an earlier checkpoint',
        }
      : undefined,
  )
  return { ...drift, seeGroup: rewards.see }
}

/**
 * Warns if the policy falls apart: its tokens become ever less expected and it is not good. An
 * entropy bonus does that where rewards hold nothing against it, and so does too high a learning rate.
 */
export function entropyRise(): Sentinel {
  const rewards = makeRewards()
  const drift = drifting('entropy-rise', surpriseOf, (first, last) =>
    last > first + 0.5 && last > 2 * first && !rewards.isGood()
      ? {
          message: `surprise per sampled token rose from ${first.toFixed(3)} to ${last.toFixed(3)}, at a mean reward of ${rewards.mean().toFixed(2)}`,
          likely:
            'the policy is falling apart: lower the learning rate, leave the entropy bonus out, and go back to an earlier checkpoint',
        }
      : undefined,
  )
  return { ...drift, seeGroup: rewards.see }
}

/** The recent mean reward of training attempts, against the best so far. */
function makeRewards() {
  let last: number[] = []
  let best = Number.NEGATIVE_INFINITY
  const recent = (): number => (last.length === 0 ? 0 : mean(last))
  return {
    see(group: Group): undefined {
      if (isHeldOut(group)) return
      for (const reward of glanceAt(group).rewards) {
        best = Math.max(best, reward)
        last.push(reward)
      }
      if (last.length > 2 * window) last = last.slice(-window)
    },
    mean: recent,
    isGood: () => last.length > 0 && best > 0 && recent() > 0.75 * best,
  }
}

/** Warns if answers have become much shorter or longer. */
export function lengthDrift(): Sentinel {
  const lengthOf = (tree: Tree): number =>
    mean(tree.trajectories.filter(isGradable).map(({ usage }) => usage.sampled))
  return drifting('length-drift', lengthOf, (first, last) =>
    last < first / 4 || last > first * 4
      ? {
          message: `sampled tokens per trajectory went from ${first.toFixed(0)} to ${last.toFixed(0)}`,
          likely:
            'the reward pays for length or for its absence: look at the shortest and longest answers, and at espalier score --probe',
        }
      : undefined,
  )
}

function drifting(
  name: string,
  measure: (tree: Tree) => number,
  judge: (first: number, last: number) => Alarm | undefined,
): Sentinel {
  const windows = makeWindows()
  let count = 0
  let isOver = false
  return {
    name,
    seeTree(tree): Alarm | undefined {
      const value = isOver ? Number.NaN : measure(tree)
      if (Number.isNaN(value)) return undefined
      windows.add(value)
      const means = windows.means(++count)
      const alarm = means && judge(means.first, means.last)
      if (alarm) isOver = true
      return alarm
    },
  }
}

/** Minus the mean log-probability of what a tree sampled. */
function surpriseOf(tree: Tree): number {
  let sum = 0
  let count = 0
  for (const { segment } of tree.nodes) {
    if (!isSampled(segment) || !segment.logprobs) continue
    const { logprobs } = segment
    // By index, because this runs for every token and an iterator would allocate an object each.
    for (let at = 0; at < logprobs.length; at++) {
      const logprob = logprobs[at]!
      if (Number.isNaN(logprob)) continue
      sum -= logprob
      count++
    }
  }
  return count === 0 ? Number.NaN : sum / count
}

/** Warns if different tasks are all answered with the same words and calls. */
export function oneAnswer(): Sentinel {
  const answers: { readonly task: string; readonly answer: string }[] = []
  const counts = new Map<string, number>()
  let isOver = false
  const count = (answer: string, more: number): void => {
    const left = (counts.get(answer) ?? 0) + more
    if (left > 0) counts.set(answer, left)
    else counts.delete(answer)
  }
  const add = (task: string, answer: string): void => {
    answers.push({ task, answer })
    count(answer, 1)
    if (answers.length > window) count(answers.shift()!.answer, -1)
  }
  return {
    name: 'one-answer',
    seeTree({ task, trajectories }): Alarm | undefined {
      if (isOver) return undefined
      for (const each of trajectories) if (isGradable(each)) add(task, allSaid(each))
      if (answers.length < window) return undefined
      // What nearly all are is what comes next, too, so that the newest is enough to look at.
      const { answer } = answers.at(-1)!
      const same = counts.get(answer)!
      if (same < 0.9 * window) return undefined
      const tasks = new Set(answers.map(each => each.task)).size
      if (tasks < 8) return undefined
      isOver = true
      return {
        message: `${same} of the last ${window} answers, to ${tasks} different tasks, are ${JSON.stringify(answer.slice(0, 80))}`,
        likely:
          answer === ''
            ? 'the policy says nothing: its first token ends the turn, or the parser takes everything for reasoning; look with espalier show --tokens'
            : 'the policy has collapsed to a shortcut, or does not see the task: compare prompts with espalier show --tokens',
      }
    },
  }
}

/** All that the policy said and called: many agents end each task with the same `done`. */
function allSaid({ messages }: Trajectory): string {
  let said = ''
  const say = (text: string): void => {
    if (text !== '') said += said === '' ? text : ` ${text}`
  }
  for (const message of messages) {
    if (message.role !== 'assistant') continue
    say(textOf(message.content).trim())
    for (const { function: called } of message.tool_calls ?? []) {
      say(called.name + called.arguments)
    }
  }
  return said
}
