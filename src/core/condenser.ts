import type { Call } from './call.ts'
import type { Message } from './message.ts'

/** What a condenser may use: how long the result may be, and how long a text is. */
export interface CondenseBudget {
  /** The most tokens the condensed conversation may have when rendered. */
  readonly tokens: number
  /** How many tokens these messages take when rendered. */
  count(messages: readonly Message[]): number
}

/** What condensing gave. */
export type Condensed =
  | { readonly kind: 'unchanged' }
  | {
      readonly kind: 'rewritten'
      readonly messages: readonly Message[]
      /** In words: what was condensed, from and to which length. */
      readonly reason: string
    }

/** Shortens the context before a turn; what it changes starts a new path. */
export interface Condenser {
  readonly name: string
  condense(messages: readonly Message[], budget: CondenseBudget, call: Call): Promise<Condensed>
}
