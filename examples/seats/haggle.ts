// Two who haggle over a price, each knowing only their own side. docs/seats.md trains both.
import { agent, type Message, random, seedOf } from 'espalier'
import { z } from 'zod'

/** How often the seller may name a price. */
const rounds = 2

export const haggle = agent({
  name: 'haggle',
  seats: ['buyer', 'seller'],
  task: z.object({ cost: z.int().min(0).max(9), worth: z.int().min(0).max(9) }),
  async run({ task: { cost, worth }, seats, signal }) {
    const seller: Message[] = [{ role: 'user', content: `you paid ${cost}` }]
    const buyer: Message[] = []
    for (let round = 0; round < rounds; round++) {
      const asked = await seats.seller.speaker.say(seller, { signal })
      const price = priceIn(asked.message.content)
      // Who names no price has ended it.
      if (price === undefined) break
      const hint = round === 0 ? `worth ${worth} to you, price ${price}` : `price ${price}`
      buyer.push({ role: 'user', content: hint })
      const said = await seats.buyer.speaker.say(buyer, { signal })
      if (said.message.content === 'yes') return { price }
      seller.push(asked.message, { role: 'user', content: 'no' })
      buyer.push(said.message)
    }
    return { price: null }
  },
  reward: {
    // What each gains or loses by the deal; nothing where there is none.
    gain({ seat, report: { price }, task: { data } }) {
      if (price === null) return 0
      return (seat === 'seller' ? price - data.cost : data.worth - price) / 10
    },
  },
  splits: ['train', 'held-out'],
  makeTasks({ count, seed, split = 'train' }) {
    const draw = random(seedOf('haggle', seed, split))
    const upTo = (most: number): number => Math.floor(most * draw())
    // There is always something to gain for both.
    return Array.from({ length: count }, (_, index) => {
      const cost = upTo(5)
      return { id: `${split}-${index}` as never, data: { cost, worth: cost + 3 + upTo(7 - cost) } }
    })
  },
})

function priceIn(content: unknown): number | undefined {
  const text = String(content ?? '').trim()
  return /^[0-9]$/.test(text) ? Number(text) : undefined
}

/** Somebody who knows the words and not the game: any price, yes as often as no. */
export function show({ task, turn, seat }: { task: { id: string }; turn: number; seat?: string }) {
  const draw = random(seedOf('show', task.id, seat ?? '', turn))()
  return seat === 'seller' ? String(Math.floor(10 * draw)) : draw < 0.5 ? 'yes' : 'no'
}

/** A seller who always wants three more than was paid, and comes down by one. */
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
