import type { Message, ToolDefinition } from '@espalier/text'
import { unlessStopped } from '../../base/core/call.ts'
import type { Task } from '../../base/core/environment.ts'
import type { Player } from '../environments/play.ts'
import { type PlayedAgent, startAgent, withOwnIds } from './agent-world.ts'
import { messageKeys } from './message-key.ts'

/** What one seat said and heard. */
export interface SeatConversation {
  readonly seat: string
  /** The first of its messages that was said in it; what the assistant says before was said elsewhere. */
  readonly from: number
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
}

/**
 * Plays an agent, every seat of it, without a model, until it returns, the player has no more to say,
 * or `turns` are over; gives all its conversations. One that goes on otherwise than it was is another one.
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
      const next = await unlessStopped({ signal }, playing.next())
      if (next.kind === 'throws') throw next.error
      if (next.kind === 'returns') break
      const { seat } = next
      const { messages, tools } = next.request
      const turn = taken.get(seat) ?? 0
      const shown = await player({ task, messages, tools, turn, ...(seat !== '' && { seat }) })
      if (!shown) break
      taken.set(seat, turn + 1)
      const reply = withOwnIds(shown, count)
      const whole = { seat, tools, messages: [...messages, reply.message] }
      const begun = said.filter(each => isBeginning(each, whole))
      const from = Math.min(messages.length, ...begun.map(each => each.from))
      said = [...said.filter(each => !begun.includes(each)), { ...whole, from }]
      next.answer(reply)
    }
    return said
  } finally {
    playing.stop()
  }
}

/** Whether a conversation is the beginning of another one. */
function isBeginning(one: SeatConversation, other: Omit<SeatConversation, 'from'>): boolean {
  const [before, after] = [one, other].map(({ messages }) => messageKeys(messages))
  return one.seat === other.seat && before!.every((message, index) => message === after![index])
}
