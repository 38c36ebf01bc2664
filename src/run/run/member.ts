import type { Task } from '../../base/core/environment.ts'
import type { Scored, Unscored } from '../../base/core/group.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { Attempt, Instrument, RolloutContext } from '../../engine/rollout/attempt.ts'
import { scoreTree } from '../../engine/rollout/score.ts'
import type { Strategy } from '../../engine/rollout/strategy.ts'
import type { Unfinished } from '../store/unfinished.ts'
import type { Listen } from '../watch/events.ts'

/** What making one member of a group needs, wherever it is made. */
export interface MemberOptions {
  readonly context: RolloutContext
  readonly strategy: Strategy
  readonly reward: RolloutContext['environment']['reward']
  readonly listen?: Listen
  /** Instruments around every attempt, the first innermost. */
  readonly instruments?: readonly Instrument[]
  /** Records attempts while they are unfinished. */
  readonly unfinished?: Pick<Unfinished, 'roll'>
}

/** Rolls one attempt with its instruments; returns the tree of every seat. */
export async function rollAttempt(
  options: MemberOptions,
  which: Attempt,
): Promise<readonly Tree[]> {
  const { strategy, instruments = [], unfinished } = options
  const context = instruments.reduce((inner, around) => around(inner, which), options.context)
  const rolling = unfinished ? unfinished.roll(strategy, context, which) : strategy(context, which)
  return [await rolling].flat() as readonly Tree[]
}

/** Scores the trees of an attempt. */
export async function scoreAttempt(
  trees: readonly Tree[],
  task: Task,
  { context, reward, listen, signal }: MemberOptions & { readonly signal: AbortSignal },
): Promise<readonly (Scored | Unscored)[]> {
  const score = async (tree: Tree): Promise<readonly (Scored | Unscored)[]> => {
    const started = context.clock()
    const scored = await scoreTree(tree, task, { ...context, reward, signal })
    listen?.({ kind: 'score-end', tree: tree.id, seconds: context.clock() - started })
    return scored
  }
  return (await Promise.all(trees.map(score))).flat()
}

/** The failed attempt for one that could not be made: its world does not open, for this reason. */
export async function rollShut(
  { context, strategy }: MemberOptions,
  which: Attempt,
  reason: string,
): Promise<readonly Tree[]> {
  const open = (): Promise<never> => Promise.reject(new Error(reason))
  const shut = { ...context, environment: { ...context.environment, open } }
  return [await strategy(shut, which)].flat() as readonly Tree[]
}
