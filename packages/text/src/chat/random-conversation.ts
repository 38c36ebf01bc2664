import type {
  AssistantMessage,
  Message,
  ToolCall,
  ToolDefinition,
  ToolMessage,
} from '../message.ts'
import type { Profile } from './calibration/calibration.ts'

/** A conversation to audit a renderer with: its opening, and turns with the observations after them. */
export interface Conversation {
  readonly opening: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  readonly turns: readonly ConversationTurn[]
}

/** One turn of the policy and what follows it. */
export interface ConversationTurn {
  readonly message: AssistantMessage
  readonly observed: readonly Message[]
  /** A word that only this turn says, near its end. */
  readonly sentinel: string
}

/** What conversations are drawn from. */
export interface ConversationOptions {
  readonly profile: Profile
  /** Numbers in [0, 1). */
  readonly random: () => number
  /** Control strings that users and tools may spell out. */
  readonly spelled: readonly string[]
}

const words = [
  'cancel',
  'my',
  'order',
  'please',
  "it's",
  '"urgent"',
  '{x: 1}',
  '100%',
  '<b>now</b>',
  'naïve',
  '订单',
  '🎉',
  'tab\there',
  'back\\slash',
  'two\n\nlines',
  'refund',
]

/** Draws a conversation within the template's limits. */
export function randomConversation(options: ConversationOptions): Conversation {
  const { profile, random } = options
  const draw = makeDraws(options)
  const hasTools = profile.needsTools || (profile.called !== undefined && random() < 0.7)
  const opening: Message[] = [{ role: 'user', content: draw.given() }]
  if (profile.takesSystem && random() < 0.5) {
    opening.unshift({ role: 'system', content: draw.given() })
  }
  const turns = Array.from({ length: 1 + draw.below(4) }, (_, index): ConversationTurn => {
    const calls = hasTools && profile.called && random() < 0.6
    return calls ? draw.callingTurn(index) : draw.spokenTurn(index)
  })
  return { opening, tools: hasTools ? [orderTool, searchTool] : [], turns }
}

const orderTool: ToolDefinition = {
  type: 'function',
  function: {
    name: 'get_order',
    description: 'Look up an order.',
    parameters: {
      type: 'object',
      properties: {
        order_id: { type: 'string', description: 'Its id.' },
        limit: { type: 'number', description: 'How many lines.' },
      },
      required: ['order_id'],
    },
  },
}

const searchTool: ToolDefinition = {
  type: 'function',
  function: {
    name: 'search',
    description: 'Search the shop.',
    parameters: {
      type: 'object',
      properties: { query: { type: 'string', description: 'What to look for.' } },
      required: ['query'],
    },
  },
}

function makeDraws({ profile, random, spelled }: ConversationOptions) {
  const below = (limit: number): number => Math.floor(random() * limit)
  const pick = <T>(items: readonly T[]): T => items[below(items.length)]!
  const text = (more: readonly string[] = []): string =>
    Array.from({ length: 1 + below(6) }, () => pick([...words, ...more])).join(' ')
  /** Messages of users and tools may spell control strings. */
  const given = (): string => text(random() < 0.2 ? spelled : [])
  /** Thoughts and words carry a unique word, so that a missing one is noticed. */
  const thought = (turn: number) =>
    random() < 0.3 ? { reasoning_content: `${text()} qzthought${turn}` } : {}

  const call = (turn: number, index: number, sentinel: string): ToolCall => {
    const isOrder = random() < 0.5
    const said = `${text()} ${sentinel} ${text()}`
    const given = isOrder ? { order_id: said, limit: pick([1, 2.5, -3]) } : { query: said }
    return {
      id: `c${String(turn).padStart(5, '0')}${String(index).padStart(3, '0')}`,
      type: 'function',
      function: { name: isOrder ? 'get_order' : 'search', arguments: JSON.stringify(given) },
    }
  }
  return {
    below,
    given,
    spokenTurn(turn: number): ConversationTurn {
      const sentinel = sentinelOf(turn)
      const content = `${text()} ${sentinel} ${text()}`
      const observed: Message[] = [{ role: 'user', content: given() }]
      return { message: { role: 'assistant', content, ...thought(turn) }, observed, sentinel }
    },
    callingTurn(turn: number): ConversationTurn {
      const sentinel = sentinelOf(turn)
      const count = profile.toolResults === 'single' ? 1 : 1 + below(3)
      const tool_calls = Array.from({ length: count }, (_, index) => call(turn, index, sentinel))
      const isSpoken = profile.called?.mark === 'content'
      const content = isSpoken ? `${text()} ${sentinel}` : pick(['', `${text()} qzwords${turn}`])
      const observed = tool_calls.map(
        ({ id, function: { name } }): ToolMessage => ({
          role: 'tool',
          tool_call_id: id,
          name,
          content: given(),
        }),
      )
      return {
        message: { role: 'assistant', content, ...thought(turn), tool_calls },
        observed,
        sentinel,
      }
    },
  }
}

function sentinelOf(turn: number): string {
  return `qzturn${turn}`
}
