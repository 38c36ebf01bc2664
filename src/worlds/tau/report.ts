import type { Json } from '../../base/core/ids.ts'
import type { Speech } from '../../base/core/speaker.ts'
import type { User, UserSpent, UserUsage } from '../../engine/environments/users/user.ts'

/** The report of an attempt at tau-bench: all that its reward and its result file need. */
export type TauReport = {
  readonly domain: string
  readonly split: string
  readonly index: number
  readonly reward: number
  /** The task as the original writes it into result files. */
  readonly task: Json
  /** Who answered last: `user`, or the tool. */
  readonly source: string
  /** What the original counts: the user's last reply; null before the end, or without a price. */
  readonly user_cost: number | null
  /** tau-bench's own account of the reward; null if the conversation did not come to its end. */
  readonly reward_info: Json
  /** Why the original would have broken off here. */
  readonly error: string | null
  /** Tokens and cost of simulating the user; null if no model plays it. */
  readonly user: (UserUsage & { readonly cost: number | null }) | null
}

/** What a million tokens of the user's model cost. */
export interface UserPrice {
  readonly prompt: number
  readonly sampled: number
}

function costOf(price: UserPrice, { prompt, sampled }: Speech['usage']): number {
  return (prompt * price.prompt + sampled * price.sampled) / 1e6
}

/** What a user used so far, for a replay; empty if no model plays it. */
export function spentBy({ spent }: User): { readonly spent?: UserSpent } {
  return spent ? { spent } : {}
}

/** Tokens and cost of simulating a user so far. */
export function usageOf(user: User, price: UserPrice | undefined): TauReport['user'] {
  const { usage } = user
  return usage ? { ...usage, cost: price ? costOf(price, usage) : null } : null
}

/** The cost that tau-bench reports: nothing for people and scripts, else that of the last reply. */
export function reportedCost(user: User, price: UserPrice | undefined): number | undefined {
  if (!user.usage) return 0
  const last = user.spent?.last
  return price && last ? costOf(price, last) : undefined
}
