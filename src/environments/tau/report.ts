import type { Json } from '../../core/ids.ts'
import type { UserUsage } from '../users/user.ts'

/** What is left of an attempt at tau-bench: all that its reward and its result file need. */
export type TauReport = {
  readonly domain: string
  readonly split: string
  readonly index: number
  /** Who answered last: `user`, or the tool. */
  readonly source: string
  readonly reward: number
  /** tau-bench's own account of the reward; null where the conversation did not come to its end. */
  readonly reward_info: Json
  /** Why the original would have broken off here. */
  readonly error: string | null
  readonly user: UserUsage | null
}
