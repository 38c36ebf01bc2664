import type { AssistantMessage, Message } from '@espalier/text'
import { textOf } from '@espalier/text'
import { creditByNode, ownSpans } from '../../base/core/credit.ts'
import type { Group, Unscored, Weighted } from '../../base/core/group.ts'
import { hasLogprobs, pathEnds, type Tree } from '../../base/core/tree.ts'
import { creditsOf, isTrained, isUnscored } from '../rows/row-record.ts'
import type { FormatOptions } from './format.ts'
import type { LossReport } from './lost.ts'
import { type TurnTokens, turnTokens } from './turns.ts'

/** One trajectory as people and templates see it, with the tokens of its turns. */
export interface Conversation {
  readonly member: Weighted | Unscored
  readonly tree: Tree
  readonly messages: readonly Message[]
  readonly turns: readonly TurnTokens[]
  /** How many paths it took: one more than the rewrites of its context. */
  readonly paths: number
}

/** The selected trajectories of a group in canonical order: member, then trajectory. */
export function conversationsOf(
  group: Group,
  { weighting, form }: Pick<FormatOptions, 'weighting' | 'form'>,
): readonly Conversation[] {
  const all = [...group.members, ...group.unscored]
  const trees = [...new Set(all.map(member => member.tree))].sort((a, b) => a.member - b.member)
  return trees.flatMap(tree => {
    const credit = creditByNode(tree, creditsOf(group, tree), weighting)
    const place = new Map(tree.trajectories.map(({ id }, index) => [id, index]))
    return all
      .filter(member => member.tree === tree)
      .sort((a, b) => place.get(a.trajectory.id)! - place.get(b.trajectory.id)!)
      .map(member => ({
        member,
        tree,
        messages: member.trajectory.messages,
        turns: turnTokens(
          tree,
          member.trajectory,
          form === 'once' ? credit : ownSpans(credit, member.trajectory.id),
        ),
        paths: pathEnds(tree, member.trajectory.end).length,
      }))
  })
}

/** Whether this trajectory is the one that trains a turn; turns that it shares are trained once. */
export function isTrainedTurn({ mask }: TurnTokens): boolean {
  return mask.includes(1)
}

/** Whether turns of a trajectory, or parts of them, have advantages of their own. */
export function hasOwnAdvantages(member: Weighted | Unscored): boolean {
  return !isUnscored(member) && (member.turns ?? member.stretches) !== undefined
}

/** Counts conversations that are not to be trained on, for formats that cannot say so. */
export function countUntrained(
  conversations: readonly Conversation[],
  { lost, trainer }: { readonly lost: LossReport; readonly trainer: string },
): void {
  lost.add(
    `that trajectories failed or were filtered: ${trainer} trains on them like the others`,
    conversations.filter(({ member }) => !isTrained(member)).length,
  )
}

/** The tokens of trained trajectories that have no log-probability while others of their attempt have one. */
export function unknownTokens(conversations: readonly Conversation[]): number {
  const known = conversations.filter(({ member, tree }) => isTrained(member) && hasLogprobs(tree))
  const turns = known.flatMap(each => each.turns)
  return turns.reduce((sum, { logprobs }) => sum + logprobs.filter(Number.isNaN).length, 0)
}

/** The turn that spoke a message, if the policy did. */
export function turnAt(conversation: Conversation, message: number): TurnTokens | undefined {
  return conversation.turns.find(({ turn }) => turn.messages === message)
}

/** The messages up to the last that the policy spoke; what was said after it teaches nothing. */
export function untilLastReply(messages: readonly Message[]): readonly Message[] {
  return messages.slice(0, messages.findLastIndex(({ role }) => role === 'assistant') + 1)
}

/** The reward of a conversation; `null` if it never got one. */
export function rewardOf({ member }: Conversation): number | null {
  return isUnscored(member) ? null : member.reward.total
}

/** How many messages at the beginning of two conversations are the same. */
export function commonMessages(a: readonly Message[], b: readonly Message[]): number {
  const limit = Math.min(a.length, b.length)
  let same = 0
  while (same < limit && JSON.stringify(a[same]) === JSON.stringify(b[same])) same++
  return same
}

/** A message as OpenAI's API takes it: without reasoning, which has no field there. */
export function withoutReasoning(message: Message): Message {
  if (message.role !== 'assistant' || message.reasoning_content === undefined) return message
  const { reasoning_content: _, ...rest } = message
  return rest
}

/** The arguments of a call as an object. */
export function argumentsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>
    }
  } catch {
    // What is not JSON is kept as text below.
  }
  return { raw: text }
}

/** The text of an assistant message; empty if it only calls. */
export function spoken(message: AssistantMessage): string {
  return textOf(message.content)
}
