import type { Message } from '@espalier/text'
import { type Conversation, commonMessages, rewardOf, untilLastReply } from './conversations.ts'

/** Two conversations of one task, of which the first earned more. */
export interface Pair {
  readonly chosen: Conversation
  readonly rejected: Conversation
  /** What both begin with; the policy speaks next in each. */
  readonly prompt: readonly Message[]
  readonly better: readonly Message[]
  readonly worse: readonly Message[]
}

/** The pairs of a group, and how many trajectories found no partner. */
export interface Pairs {
  readonly pairs: readonly Pair[]
  readonly alone: number
}

/**
 * Pairs the best of a group with the worst, the second best with the second worst and so on, while
 * the rewards differ. Each trajectory is in one pair at most.
 */
export function pairsOf(conversations: readonly Conversation[]): Pairs {
  const ranked = conversations
    .filter(each => rewardOf(each) !== null)
    .sort((a, b) => rewardOf(b)! - rewardOf(a)!)
  const pairs: Pair[] = []
  for (let index = 0; index < Math.floor(ranked.length / 2); index++) {
    const chosen = ranked[index]!
    const rejected = ranked[ranked.length - 1 - index]!
    if (rewardOf(chosen)! <= rewardOf(rejected)!) break
    const pair = toPair(chosen, rejected)
    if (pair) pairs.push(pair)
  }
  return { pairs, alone: conversations.length - 2 * pairs.length }
}

/** Cuts two conversations where the policy first said something different. */
function toPair(chosen: Conversation, rejected: Conversation): Pair | undefined {
  const better = untilLastReply(chosen.messages)
  const worse = untilLastReply(rejected.messages)
  const same = commonMessages(better, worse)
  let cut = same
  while (cut >= 0 && !(isReply(better[cut]) && isReply(worse[cut]))) cut--
  if (cut < 0) return undefined
  return {
    chosen,
    rejected,
    prompt: better.slice(0, cut),
    better: better.slice(cut),
    worse: worse.slice(cut),
  }
}

const isReply = (message: Message | undefined): boolean => message?.role === 'assistant'
