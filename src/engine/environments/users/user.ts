import type { Call } from '../../../base/core/call.ts'

/** The person a policy talks to in one world: scripted, simulated by a model, or real. */
export interface User {
  /** The user's first words, given their instruction. */
  open(instruction: string, call: Call): Promise<UserWords>
  /** The answer to what was said. */
  answer(said: string, call: Call): Promise<UserWords>
  /**
   * For replays: records an exchange as it happened before, without asking the model. `spent` restores
   * the tokens used by then.
   */
  recall(exchange: Exchange, spent?: UserSpent): void
  /** A copy with the same memory that goes on by itself. */
  fork(): User
  /** Tokens that the user's own model read and sampled so far; absent if there is no model. */
  readonly usage?: UserUsage
  /** Tokens that the user's own model read and sampled, with those of the last reply for replays. */
  readonly spent?: UserSpent
}

/** What a user says; null if the model answered without any text. */
export type UserWords = string | null

/** Python's error when `None` is searched for the stop text. */
export const notSearchable = "argument of type 'NoneType' is not iterable"

/** The words of a user who said something; null fails, as it does in tau-bench. */
export function spoken(words: UserWords): string {
  if (words === null) throw new TypeError(`the simulated user answered null: ${notSearchable}`)
  return words
}

/** What was said to a user, or at the opening the instruction, and what the user answered. */
export interface Exchange {
  readonly kind: 'open' | 'answer'
  readonly said: string
  readonly answer: UserWords
}

/** What simulating a user cost. */
export type UserUsage = {
  readonly calls: number
  readonly prompt: number
  readonly sampled: number
}

/** Tokens used to simulate a user up to a point of a conversation. */
export type UserSpent = UserUsage & {
  /** Tokens of the last reply, verdicts aside; null before it. */
  readonly last: { readonly prompt: number; readonly sampled: number } | null
}

/** Makes the user of one world; the same seed, the same user. */
export type OpenUser = (options: { readonly seed: number }) => User

/** A user who says fixed lines one after the other, and the last one for ever. */
export function scriptedUser(lines: readonly [string, ...string[]]): User {
  return scriptedFrom(lines, 0)
}

function scriptedFrom(lines: readonly string[], start: number): User {
  let position = start
  const next = async (): Promise<string> => {
    const line = lines[Math.min(position, lines.length - 1)] as string
    position++
    return line
  }
  return {
    open: next,
    answer: next,
    recall: () => {
      position++
    },
    fork: () => scriptedFrom(lines, position),
  }
}

/** A real person: `ask` shows a text, such as on a terminal, and gives what was typed. */
export function humanUser(ask: (text: string, call: Call) => Promise<string>): User {
  const user: User = { open: ask, answer: ask, recall: () => {}, fork: () => user }
  return user
}
