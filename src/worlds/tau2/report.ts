import { dumps } from '@espalier/text/python'
import type { Json } from '../../base/core/ids.ts'
import type { UserUsage } from '../../engine/environments/users/user.ts'
import type { UserPrice } from '../tau/report.ts'
import type { RewardInfo } from './evaluate.ts'
import type { Tau2Message } from './message.ts'
import type { Termination } from './orchestrator.ts'
import { plain, type Value } from './program/values.ts'
import type { GoldenAction, Tau2Task } from './task.ts'

/** The report of an attempt at tau2-bench: all that its reward and its result file need. */
export type Tau2Report = {
  readonly benchmark: 'tau2-bench'
  readonly domain: string
  readonly split: string
  readonly task_id: string
  readonly reward: number
  /** `null` if the conversation did not come to its end. */
  readonly termination_reason: Termination | null
  readonly steps: number
  readonly errors: number
  /** `null` if no price is known. */
  readonly user_cost: number | null
  /** The original's own account of the reward; `null` before the end. */
  readonly reward_info: Json
  /** Every message, also those that only the user saw. */
  readonly messages: Json
  /** The task as its file has it, as JSON text, in which 2.0 is not 2. */
  readonly task: string
  /** How banking found its documents; `null` elsewhere. */
  readonly retrieval: string | null
  /** Tokens and cost of simulating the user; `null` if no model plays it. */
  readonly user: (UserUsage & { readonly cost: number | null }) | null
}

/** Tokens used to simulate a user, with their cost if the price is known. */
export function usageWithCost(
  usage: UserUsage | null,
  price: UserPrice | undefined,
): Tau2Report['user'] {
  if (usage === null) return null
  const cost = price ? (usage.prompt * price.prompt + usage.sampled * price.sampled) / 1e6 : null
  return { ...usage, cost }
}

/** Plain JSON; whole floats become ints, which readers of rewards and messages accept. */
const toJson = (value: Value): Json => JSON.parse(dumps(plain(value))) as Json

/** Messages with all that a result file needs of them. */
export function messagesToJson(messages: readonly Tau2Message[]): Json {
  return messages.map((message): Json => {
    if (message.role === 'system') return { role: 'system', content: message.content }
    if (message.role === 'tool') {
      const { role, id, content, requestor, error } = message
      return { role, id, content, requestor, error }
    }
    const calls = message.tool_calls?.map(call => ({
      id: call.id,
      name: call.name,
      // As text, so that the difference between 2.0 and 2 is not lost.
      arguments: dumps(plain(call.arguments)),
      requestor: call.requestor,
    }))
    return {
      role: message.role,
      content: message.content,
      tool_calls: calls ?? null,
      cost: message.cost ?? null,
    }
  })
}

const actionToJson = ({ arguments: given, compare_args, ...action }: GoldenAction): Json => ({
  ...action,
  arguments: toJson(given),
  info: null,
  compare_args: compare_args === null ? null : [...compare_args],
})

/** A reward as the original dumps it. */
export function rewardToJson(info: RewardInfo): Json {
  return {
    ...(info as unknown as Record<string, Json>),
    env_assertions:
      info.env_assertions?.map(({ env_assertion, met, reward }) => ({
        env_assertion: { ...env_assertion, arguments: toJson(env_assertion.arguments) },
        met,
        reward,
      })) ?? null,
    action_checks:
      info.action_checks?.map(check => ({ ...check, action: actionToJson(check.action) })) ?? null,
  }
}

/** A task as JSON text. */
export const taskText = ({ source }: Tau2Task): string => dumps(plain(source))
