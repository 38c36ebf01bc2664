import { textOf } from '@espalier/text'
import type { Environment, OpenCall, Task } from '../../base/core/environment.ts'
import { describeCause } from '../../base/core/failure.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { mean } from '../../base/math/statistics.ts'
import { inBounds } from '../../engine/environments/in-bounds.ts'
import { type Player, scorePlay } from '../../engine/environments/play.ts'
import { replyOf } from '../../engine/environments/reply.ts'
import { defaultRewardSeconds } from '../../engine/rollout/attempt.ts'

/** The reward of an answer that should earn nothing. */
export interface ProbeResult {
  readonly probe: string
  readonly about: string
  /** Over the tasks that could be scored; `null` if none could. */
  readonly reward: number | null
  readonly most: number | null
  readonly tasks: number
  readonly problem?: string
}

/** Answers that do no work. A reward that pays for one of them will be exploited by it. */
const probes: Readonly<Record<string, { readonly about: string; readonly player: Player }>> = {
  empty: { about: 'says nothing', player: ({ turn }) => (turn === 0 ? replyOf('') : undefined) },
  copied: {
    about: 'repeats what it was told',
    player: ({ turn, messages }) => {
      const last = messages.findLast(message => message.role === 'user')
      return turn === 0 ? replyOf(last ? textOf(last.content) : '') : undefined
    },
  },
  'format only': {
    about: 'has the form of an answer and no content',
    player: ({ turn }) =>
      turn === 0
        ? replyOf('<think>\n\n</think>\n<answer></answer>\n#### \n\\boxed{}\nAnswer:')
        : undefined,
  },
  refusal: {
    about: 'refuses politely',
    player: ({ turn }) =>
      turn === 0 ? replyOf('I am sorry, but I cannot help with that.') : undefined,
  },
}

/** How rewards are probed. */
export interface ProbeOptions extends Pick<OpenCall, 'signal' | 'seed'> {
  /** Seconds that whatever is asked of a world or its reward may take. @default 600 */
  readonly rewardSeconds?: number
}

/** Plays answers that should be worth nothing in the worlds of some tasks and scores them. */
export async function probeRewards(
  environment: Environment,
  tasks: readonly Task[],
  { signal, seed, rewardSeconds = defaultRewardSeconds }: ProbeOptions,
): Promise<readonly ProbeResult[]> {
  // Worlds and rewards that hang are left when their time is over, or the command is stopped.
  const bounded = inBounds(environment, { seconds: rewardSeconds, signal })
  const lanes = makeLanes({ policy: 4, tools: 4, environment: 4, reward: 4 })
  const results: ProbeResult[] = []
  for (const [probe, { about, player }] of Object.entries(probes)) {
    const rewards: number[] = []
    let problem: string | undefined
    for (const task of tasks) {
      try {
        const call = { player, turns: 1, signal, seed, lanes }
        rewards.push((await scorePlay(bounded, task, call)).total)
      } catch (cause) {
        signal.throwIfAborted()
        problem ??= describeCause(cause)
      }
    }
    results.push({
      probe,
      about,
      reward: rewards.length === 0 ? null : mean(rewards),
      most: rewards.length === 0 ? null : Math.max(...rewards),
      tasks: rewards.length,
      ...(problem !== undefined && { problem }),
    })
  }
  return results
}
