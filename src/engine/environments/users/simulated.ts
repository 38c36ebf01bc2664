import type { Message } from '@espalier/text'
import { textOf } from '@espalier/text'
import type { Call } from '../../../base/core/call.ts'
import type { Speaker, Speech } from '../../../base/core/speaker.ts'
import {
  afterLabel,
  GREETING,
  isSatisfied,
  nothing,
  parseReactReply,
  transcriptOf,
  type UserPrompts,
  UserReplyError,
  type UserStrategy,
} from './strategy.ts'
import {
  type Exchange,
  notSearchable,
  type User,
  type UserSpent,
  type UserUsage,
  type UserWords,
} from './user.ts'

/** How a user is simulated. */
export interface SimulatedUserOptions {
  readonly strategy: UserStrategy
  readonly prompts: UserPrompts
  /** What the user says to end the conversation. @default '###STOP###' */
  readonly stop?: string
  /** Times to ask again for a reply in the wrong form. @default 0 */
  readonly retries?: number
  /** Whether a reasoning user's thought is kept from the agent. @default false */
  readonly hideThought?: boolean
  /** How a candidate is shown to the supervisor that verifies it. @default its text */
  readonly describeCandidate?: (text: string) => string
  /** @default the speaker's own */
  readonly temperature?: number
  readonly seed?: number
}

/** How often candidates are verified, and a reply reflected upon, before giving up. */
const CANDIDATES = 3
const REFLECTIONS = 1

const defaults = {
  stop: '###STOP###',
  retries: 0,
  hideThought: false,
  describeCandidate: (text: string) => text,
}

/** A user played by a model. The model is the assistant of the user's own conversation. */
export class SimulatedUser implements User {
  readonly #speaker: Speaker
  readonly #options: SimulatedUserOptions & typeof defaults
  #messages: Message[] = []
  #usage: UserUsage = { calls: 0, prompt: 0, sampled: 0 }
  #last: UserSpent['last'] = null

  constructor(speaker: Speaker, options: SimulatedUserOptions) {
    this.#speaker = speaker
    this.#options = { ...defaults, ...options }
  }

  /** The user's own conversation so far. */
  get messages(): readonly Message[] {
    return this.#messages
  }

  get usage(): UserUsage {
    return this.#usage
  }

  get spent(): UserSpent {
    return { ...this.#usage, last: this.#last }
  }

  /** Begins a conversation; without an instruction it is the rehearsal tau-bench's users hold. */
  async open(instruction: string | undefined, call: Call): Promise<UserWords> {
    this.#begin(instruction)
    return await this.#reply(call)
  }

  #begin(instruction: string | undefined): void {
    const system = this.#options.prompts.system(this.#options.strategy, instruction)
    this.#messages = [
      { role: 'system', content: system },
      { role: 'user', content: GREETING },
    ]
  }

  async answer(said: string, call: Call): Promise<UserWords> {
    this.#messages.push({ role: 'user', content: said })
    return await this.#reply(call)
  }

  recall({ kind, said, answer }: Exchange, spent?: UserSpent): void {
    if (kind === 'open') this.#begin(said)
    else this.#messages.push({ role: 'user', content: said })
    this.#messages.push({ role: 'assistant', content: answer })
    if (!spent) return
    const { last, ...usage } = spent
    this.#usage = usage
    this.#last = last
  }

  fork(): SimulatedUser {
    const forked = new SimulatedUser(this.#speaker, this.#options)
    forked.#messages = [...this.#messages]
    forked.#usage = this.#usage
    forked.#last = this.#last
    return forked
  }

  async #reply(call: Call): Promise<UserWords> {
    const before = this.#messages.length
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#byStrategy(call)
      } catch (error) {
        if (!(error instanceof UserReplyError) || attempt >= this.#options.retries) throw error
        this.#messages.length = before
      }
    }
  }

  #byStrategy(call: Call): Promise<UserWords> {
    switch (this.#options.strategy) {
      case 'llm':
        return this.#generate(this.#messages, call)
      case 'react':
        return this.#generateThoughtfully(call)
      case 'verify':
        return this.#generateVerified(call)
      default:
        return this.#generateReflected(call)
    }
  }

  /** Asks for the next reply and remembers it. */
  async #generate(messages: readonly Message[], call: Call): Promise<UserWords> {
    const speech = await this.#ask(messages, call)
    this.#last = lastOf(speech)
    const words = wordsOf(speech)
    this.#messages.push({ role: 'assistant', content: words })
    return words
  }

  async #generateThoughtfully(call: Call): Promise<string> {
    const words = await this.#generate(this.#messages, call)
    if (words === null) throw new TypeError(notSearchable)
    return parseReactReply(words, this.#options)
  }

  /** The first accepted candidate is said and remembered; if none is accepted, the last is said but not remembered. */
  async #generateVerified(call: Call): Promise<UserWords> {
    let candidate: UserWords = ''
    for (let attempt = 0; attempt < CANDIDATES; attempt++) {
      const speech = await this.#ask(this.#messages, call)
      this.#last = lastOf(speech)
      candidate = wordsOf(speech)
      const shown = this.#options.describeCandidate(candidate ?? nothing)
      if (await this.#isVerified(shown, this.#messages, call)) {
        this.#messages.push({ role: 'assistant', content: candidate })
        return candidate
      }
    }
    return candidate
  }

  /** A reply that the supervisor rejects is reflected on and tried again; both stay in the memory. */
  async #generateReflected(call: Call): Promise<UserWords> {
    const conversation = [...this.#messages]
    const first = await this.#generate(conversation, call)
    if (await this.#isVerified(first, conversation, call)) return first
    for (let attempt = 0; attempt < REFLECTIONS; attempt++) {
      conversation.push({ role: 'user', content: await this.#reflect(first, conversation, call) })
      const second = await this.#generate(conversation, call)
      if (await this.#isVerified(second, conversation, call)) return second
    }
    return first
  }

  async #isVerified(reply: UserWords, messages: readonly Message[], call: Call): Promise<boolean> {
    const prompt = this.#options.prompts.verify(reply ?? nothing, transcriptOf(messages))
    return isSatisfied(await this.#askSupervisor(prompt, call))
  }

  async #reflect(reply: UserWords, messages: readonly Message[], call: Call): Promise<string> {
    const prompt = this.#options.prompts.reflect(reply ?? nothing, transcriptOf(messages))
    return afterLabel(await this.#askSupervisor(prompt, call), 'Response:')
  }

  async #askSupervisor(prompt: string, call: Call): Promise<string> {
    const speech = await this.#ask([{ role: 'user', content: prompt }], call)
    return textOf(speech.message.content)
  }

  async #ask(messages: readonly Message[], { signal }: Call): Promise<Speech> {
    const { temperature, seed } = this.#options
    const { calls, prompt, sampled } = this.#usage
    const speech = await this.#speaker.say([...messages], {
      signal,
      ...(temperature === undefined ? {} : { temperature }),
      // Every call of a user has its own seed, so that a rejected candidate is not said again.
      ...(seed === undefined ? {} : { seed: (seed + calls) % 2 ** 31 }),
    })
    this.#usage = {
      calls: calls + 1,
      prompt: prompt + speech.usage.prompt,
      sampled: sampled + speech.usage.sampled,
    }
    return speech
  }
}

/** Null stays null: a model that says nothing at all has not said the empty text. */
function wordsOf({ message: { content } }: Speech): UserWords {
  return content === null ? null : textOf(content)
}

function lastOf({ usage: { prompt, sampled } }: Speech): UserSpent['last'] {
  return { prompt, sampled }
}
