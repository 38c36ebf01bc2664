import type { Message, ToolDefinition } from '@espalier/text'
import type { Task } from '../../base/core/environment.ts'
import type { Player } from '../environments/play.ts'
import { type PlayedAgent, startAgent } from './agent-world.ts'

/** What one seat said and heard. */
export interface SeatConversation {
  readonly seat: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
}

/**
 * Plays every seat of an agent, without a model, until it returns, the player has no more to say,
 * or `turns` are over; gives the conversations of all seats.
 */
export async function playSeats<Data>(
  agent: PlayedAgent<Data>,
  task: Task<Data>,
  { player, turns, signal }: { player: Player<Data>; turns: number; signal: AbortSignal },
): Promise<readonly SeatConversation[]> {
  const playing = startAgent(agent, task, { signal, seed: 0 })
  let said: readonly SeatConversation[] = []
  const taken = new Map<string, number>()
  try {
    for (let count = 0; count < turns; count++) {
      const next = await playing.next()
      if (next.kind === 'throws') throw next.error
      if (next.kind === 'returns') break
      const { seat } = next
      const { messages, tools } = next.request
      const turn = taken.get(seat) ?? 0
      const reply = await player({ task, messages, tools, turn, seat })
      if (!reply) break
      taken.set(seat, turn + 1)
      const whole = { seat, tools, messages: [...messages, reply.message] }
      said = [...said.filter(each => !isBeginning(each, whole)), whole]
      next.answer(reply)
    }
    return said
  } finally {
    playing.stop()
  }
}

/** Whether a conversation is the beginning of another one. */
function isBeginning(one: SeatConversation, other: SeatConversation): boolean {
  const [before, after] = [one, other].map(({ messages }) =>
    messages.map(each => JSON.stringify(each)),
  )
  return one.seat === other.seat && before!.every((message, index) => message === after![index])
}
