// Two who haggle over a price, each knowing only their own side. docs/seats.md trains both.
import { agent, type Message, random, type Speaker, seedOf } from 'espalier'
import { z } from 'zod'

/** How often the seller may name a price. */
const rounds = 2

const task = z.object({ cost: z.int().min(0).max(9), worth: z.int().min(0).max(9) })
type Deal = z.output<typeof task>

/** Says something in answer to a conversation: a seat that learns, or a rule. */
type Say = (messages: readonly Message[]) => Promise<string> | string

/** One haggle: the price they agree on, or none. */
async function trade({ cost, worth }: Deal, sell: Say, buy: Say): Promise<number | null> {
  const seller: Message[] = [{ role: 'user', content: `you paid ${cost}` }]
  const buyer: Message[] = []
  for (let round = 0; round < rounds; round++) {
    const asked = await sell(seller)
    // Who names no price has ended it.
    if (!/^[0-9]$/.test(asked.trim())) break
    const hint = round === 0 ? `worth ${worth} to you, price ${asked}` : `price ${asked}`
    buyer.push({ role: 'user', content: hint })
    const said = await buy(buyer)
    if (said === 'yes') return Number(asked)
    seller.push({ role: 'assistant', content: asked }, { role: 'user', content: 'no' })
    buyer.push({ role: 'assistant', content: said })
  }
  return null
}

/** What a seat gains or loses by a deal; nothing where there is none. */
function gain(seat: string, { cost, worth }: Deal, price: number | null): number {
  if (price === null) return 0
  return (seat === 'seller' ? price - cost : worth - price) / 10
}

const speaking =
  ({ speaker }: { speaker: Speaker }, signal: AbortSignal): Say =>
  async messages =>
    String((await speaker.say(messages, { signal })).message.content ?? '')

const common = {
  seats: ['buyer', 'seller'],
  task,
  splits: ['train', 'held-out'],
  makeTasks({ count, seed, split = 'train' }: { count: number; seed: number; split?: string }) {
    const draw = random(seedOf('haggle', seed, split))
    const upTo = (most: number): number => Math.floor(most * draw())
    // There is always something to gain for both. A quarter of the deals is held out, whatever the seed.
    const deal = (): { cost: number; worth: number } => {
      const cost = upTo(5)
      const worth = cost + 3 + upTo(7 - cost)
      const isHeldOut = (cost + worth) % 4 === 0
      return isHeldOut === (split === 'held-out') ? { cost, worth } : deal()
    }
    return Array.from({ length: count }, (_, index) => ({
      id: `${split}-${index}` as never,
      data: deal(),
    }))
  },
} as const

/** The game: buyer and seller meet each other. */
export const haggle = agent({
  ...common,
  name: 'haggle',
  run: async ({ task: deal, seats, signal }) => ({
    price: await trade(deal, speaking(seats.seller, signal), speaking(seats.buyer, signal)),
  }),
  reward: { gain: ({ seat, report, task: { data } }) => gain(seat, data, report.price) },
})

/** The same against a fixed opponent: both seats learn at once, neither from the other. */
export const practice = agent({
  ...common,
  name: 'practice',
  run: async ({ task: deal, seats, signal }) => ({
    seller: await trade(deal, speaking(seats.seller, signal), fixedBuyer),
    buyer: await trade(deal, fixedSeller, speaking(seats.buyer, signal)),
  }),
  reward: {
    gain: ({ seat, report, task: { data } }) =>
      gain(seat, data, seat === 'seller' ? report.seller : report.buyer),
  },
})

/** Somebody who knows the words and not the game: any price, yes as often as no. */
export function show({ task, turn, seat }: { task: { id: string }; turn: number; seat?: string }) {
  const draw = random(seedOf('show', task.id, seat ?? '', turn))()
  return seat === 'seller' ? String(Math.floor(10 * draw)) : draw < 0.5 ? 'yes' : 'no'
}

/** A seller who wants three more than was paid, and comes down by one. */
export function fixedSeller(messages: readonly Message[]): string {
  const cost = Number(/\d+/.exec(String(messages[0]?.content))?.[0])
  return String(Math.min(9, cost + 3 - (messages.length > 1 ? 1 : 0)))
}

/** A buyer who takes everything that leaves something. */
export function fixedBuyer(messages: readonly Message[]): string {
  const worth = Number(/worth (\d)/.exec(String(messages[0]?.content))?.[1])
  const price = Number(/price (\d)/.exec(String(messages.at(-1)?.content))?.[1])
  return price < worth ? 'yes' : 'no'
}
