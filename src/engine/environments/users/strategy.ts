import type { Message } from '@espalier/text'
import { textOf } from '@espalier/text'

/** The ways to simulate a user by a model. */
export const userStrategies = ['llm', 'react', 'verify', 'reflection'] as const

/** One way to simulate a user by a model. */
export type UserStrategy = (typeof userStrategies)[number]

/** Builds the prompts of simulated users and of their supervisor. */
export interface UserPrompts {
  /** The user's system prompt; `react` asks for a thought before the words. */
  system(strategy: UserStrategy, instruction: string | undefined): string
  /** Asks whether a reply is satisfactory. */
  verify(reply: string, transcript: string): string
  /** Asks what was wrong with a reply, and for a better one. */
  reflect(reply: string, transcript: string): string
}

/** What the agent is supposed to have said before the user's first words. */
export const GREETING = 'Hi! How can I help you today?'

/** A reply that does not have the form it was asked for. */
export class UserReplyError extends Error {
  override name = 'ValueError'
}

/** How tau-bench writes an answer that is null. */
export const nothing = 'None'

const LABELS: Readonly<Record<string, string>> = { user: 'Customer', assistant: 'Agent' }

/**
 * The conversation as the supervisor reads it. The simulated user is the assistant of its own
 * conversation, so the labels are the wrong way round; tau-bench has them like this.
 */
export function transcriptOf(messages: readonly Message[]): string {
  return messages
    .map(({ role, content }) => {
      const words = content === null ? nothing : textOf(content)
      return `${LABELS[role] ?? capitalized(role)}: ${words}`
    })
    .join('\n')
}

const capitalized = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/** Whether the supervisor was satisfied. Any `true` counts, even that of `untrue`, as in tau-bench. */
export function isSatisfied(verdict: string): boolean {
  return verdict.toLowerCase().includes('true')
}

/** The part after the only occurrence of a label. */
export function afterLabel(text: string, label: string): string {
  const parts = text.split(label)
  if (parts.length === 1)
    throw new UserReplyError('not enough values to unpack (expected 2, got 1)')
  if (parts.length > 2) throw new UserReplyError('too many values to unpack (expected 2)')
  return (parts[1] as string).trim()
}

/** How a reasoning user's reply is read. */
export interface ReactOptions {
  readonly stop: string
  /** Keeps the thought from the agent, which tau-bench shows it by mistake. */
  readonly hideThought: boolean
}

/** What a reasoning user says to the agent. */
export function parseReactReply(reply: string, { stop, hideThought }: ReactOptions): string {
  if (reply.includes(stop)) return stop
  if (hideThought && reply.includes('User Response:')) return afterLabel(reply, 'User Response:')
  if (reply.includes('Thought:')) return afterLabel(reply, 'Thought:')
  if (reply.includes('User Response:')) return afterLabel(reply, 'User Response:')
  throw new UserReplyError(`Invalid response format: ${reply}`)
}
