import { type Message, type ToolDefinition, textOf } from '@espalier/text'
import type { ToolProblem } from '../../base/core/tool.ts'
import type { IdleWatch } from './idle-watch.ts'
import type { Acted, PlayedWorld } from './played-world.ts'

/** The result of a tool call. */
export interface Called {
  readonly text: string
  readonly problem: ToolProblem | undefined
  readonly reward: number | undefined
  readonly isDone: boolean
}

/** A tool as it is listed. */
export interface HostedTool {
  readonly name: string
  readonly description: string
  readonly schema: Readonly<Record<string, unknown>>
}

const sayNames = ['say', 'say_words', 'answer_in_words', 'espalier_say']

/**
 * A world as clients of other protocols see it: tools only. One extra tool says words, since what a
 * policy says may be a reply to a user, or its answer.
 */
export class HostedWorld implements AsyncDisposable {
  readonly tools: readonly HostedTool[]
  readonly #played: PlayedWorld
  readonly #idle: IdleWatch
  readonly #say: string

  constructor(played: PlayedWorld, idle: IdleWatch) {
    this.#played = played
    this.#idle = idle
    const own = played.world.tools.map(toHosted)
    const taken = new Set(own.map(({ name }) => name))
    this.#say = sayNames.find(name => !taken.has(name)) ?? sayNames[0]!
    this.tools = [...own, sayTool(this.#say)]
  }

  get isDone(): boolean {
    return this.#played.isOver
  }

  get turns(): number {
    return this.#played.turns
  }

  get taskId(): string {
    return this.#played.task.id
  }

  get opening(): readonly Message[] {
    return this.#played.world.opening
  }

  /** Calls a tool. A wrong call is answered with an error; a failure of the world is thrown. */
  async call(name: string, input: Readonly<Record<string, unknown>>): Promise<Called> {
    return await this.#idle.during(() => this.#call(name, input))
  }

  async #call(name: string, input: Readonly<Record<string, unknown>>): Promise<Called> {
    const acted =
      name === this.#say
        ? await this.#played.say(wordsOf(input))
        : await this.#played.call(name, input)
    const reward = await this.#rewardOf(acted)
    const text = acted.observed.map(each => textOf(each.content)).join('\n')
    return { text, problem: acted.calls[0]?.problem, reward, isDone: this.isDone }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#played[Symbol.asyncDispose]()
  }

  /**
   * The reward of a step is what the world gives. If the environment has reward parts, the last step
   * gets their total minus what earlier steps gave, so that the sum is the reward.
   */
  async #rewardOf({ reward }: Acted): Promise<number | undefined> {
    if (!this.isDone) {
      if (reward !== undefined) this.#given += reward
      return reward
    }
    const { total } = await this.#played.score()
    return total - this.#given
  }

  #given = 0
}

/** The messages of an opening as one text. */
export function textOfMessages(messages: readonly Message[]): string {
  return messages.map(({ content }) => textOf(content)).join('\n\n')
}

function toHosted({ function: { name, description, parameters } }: ToolDefinition): HostedTool {
  return { name, description: description ?? '', schema: { type: 'object', ...parameters } }
}

function sayTool(name: string): HostedTool {
  return {
    name,
    description: 'Says something in words: a reply to the user, or the answer that ends the task.',
    schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  }
}

function wordsOf({ text }: Readonly<Record<string, unknown>>): string {
  return typeof text === 'string' ? text : JSON.stringify(text ?? '')
}
