// Two who haggle over a price, each knowing only their own side. docs/guides/seats.md trains both.
import { agent, type Message } from 'espalier'
import { random, seedOf } from 'espalier/math'
import type { Speaker } from 'espalier/policies'
import { z } from 'zod'

/** How often the seller may name a price. */
const rounds = 2

const task = z.object({ cost: z.int().min(0).max(9), worth: z.int().min(0).max(9) })
type Deal = z.output<typeof task>

/** Says something in answer to a conversation: a seat that learns, or a rule. */
type Say = (messages: readonly Message[]) => Promise<string> | string

/** How a haggle went: what it was about, what was asked, and the price they agreed on, or none. */
export interface Trade extends Deal {
  readonly asked: readonly number[]
  readonly price: number | null
}

/** One haggle between somebody who sells and somebody who buys. */
async function trade({ cost, worth }: Deal, sell: Say, buy: Say): Promise<Trade> {
  const seller: Message[] = [{ role: 'user', content: `you paid ${cost}` }]
  const buyer: Message[] = []
  const prices: number[] = []
  for (let round = 0; round < rounds; round++) {
    const asked = await sell(seller)
    // An answer without a price ends the haggle.
    if (!/^[0-9]$/.test(asked.trim())) break
    prices.push(Number(asked))
    const hint = round === 0 ? `worth ${worth} to you, price ${asked}` : `price ${asked}`
    buyer.push({ role: 'user', content: hint })
    const said = await buy(buyer)
    if (said === 'yes') return { cost, worth, asked: prices, price: Number(asked) }
    seller.push({ role: 'assistant', content: asked }, { role: 'user', content: 'no' })
    buyer.push({ role: 'assistant', content: said })
  }
  return { cost, worth, asked: prices, price: null }
}

/** What a seat gains or loses by a deal; 0 without a deal. */
function gain(seat: string, { cost, worth }: Deal, price: number | null): number {
  if (price === null) return 0
  return (seat === 'seller' ? price - cost : worth - price) / 10
}

const speaking =
  ({ speaker }: { speaker: Speaker }, signal: AbortSignal): Say =>
  async messages =>
    String((await speaker.say(messages, { signal })).message.content ?? '')

const common = {
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
      id: `${split}-${index}`,
      data: deal(),
    }))
  },
} as const

/** The game: buyer and seller meet each other. */
export const haggle = agent({
  ...common,
  name: 'haggle',
  seats: ['buyer', 'seller'],
  run: ({ task: deal, seats, signal }) =>
    trade(deal, speaking(seats.seller, signal), speaking(seats.buyer, signal)),
  reward: { gain: ({ seat, report, task: { data } }) => gain(seat, data, report.price) },
})

/**
 * The same, each against another player: our buyer meets a shop, our seller a customer. `--seat`
 * names their players: a fixed rule, or the policy's own past.
 */
export const market = agent({
  ...common,
  name: 'market',
  seats: ['buyer', 'seller', 'shop', 'customer'],
  run: async ({ task: deal, seats, signal }) => {
    const bought = await trade(deal, speaking(seats.shop, signal), speaking(seats.buyer, signal))
    const sold = await trade(deal, speaking(seats.seller, signal), speaking(seats.customer, signal))
    return { bought, sold }
  },
  reward: {
    gain({ seat, report: { bought, sold }, task: { data } }) {
      if (seat === 'buyer') return gain('buyer', data, bought.price)
      if (seat === 'shop') return gain('seller', data, bought.price)
      return gain(seat === 'seller' ? 'seller' : 'buyer', data, sold.price)
    },
  },
})

/** A player that knows the words and not the game: any price, yes as often as no. */
export function show({ task, turn, seat }: { task: { id: string }; turn: number; seat?: string }) {
  const draw = random(seedOf('show', task.id, seat ?? '', turn))()
  const sells = seat === 'seller' || seat === 'shop'
  return sells ? String(Math.floor(10 * draw)) : draw < 0.5 ? 'yes' : 'no'
}

/** A seller who wants three more than was paid, and comes down by one. */
export function fixedSeller(messages: readonly Message[]): string {
  const cost = Number(/\d+/.exec(String(messages[0]?.content))?.[0])
  return String(Math.min(9, cost + 3 - (messages.length > 1 ? 1 : 0)))
}

/** A buyer who accepts every price that leaves a gain. */
export function fixedBuyer(messages: readonly Message[]): string {
  const worth = Number(/worth (\d)/.exec(String(messages[0]?.content))?.[1])
  const price = Number(/price (\d)/.exec(String(messages.at(-1)?.content))?.[1])
  return price < worth ? 'yes' : 'no'
}
