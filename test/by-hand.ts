import { type Message, textOf } from '@espalier/text'
import type { Environment, Task, World } from '../src/base/core/environment.ts'
import type { Json } from '../src/base/core/ids.ts'
import { makeLanes } from '../src/base/core/lane.ts'
import { withFork } from '../src/engine/environments/fork.ts'
import { type Player, scorePlay } from '../src/engine/environments/play.ts'
import { replyOf } from '../src/engine/environments/reply.ts'

/** A web world whose calls a test or script makes itself, naming elements as a reader would. */
export interface ByHand extends AsyncDisposable {
  /** What was read last. */
  readonly text: string
  readonly isOver: boolean
  /** The reference of an element in what was read last. */
  find(role: string, name?: string, nth?: number): string
  call(tool: string, input: Readonly<Record<string, unknown>>): Promise<string>
  report(): Promise<Json>
  /** A copy, made by replay. */
  fork(): Promise<ByHand>
}

const { signal } = new AbortController()

/** Opens a world to be played by hand. */
export async function openForHand<Data>(
  environment: Environment<Data>,
  task: Task<Data>,
  seed = 1,
): Promise<ByHand> {
  const lanes = makeLanes({ policy: 4, tools: 4, environment: 4, reward: 4 })
  const world = await withFork(environment).open(task, { seed, signal, lanes })
  return byHand(world, [...world.opening])
}

function byHand(world: World, messages: Message[]): ByHand {
  let turn = messages.filter(({ role }) => role === 'assistant').length
  let isOver = false
  const text = (): string => textOf(messages.at(-1)!.content)
  return {
    get text() {
      return text()
    },
    get isOver() {
      return isOver
    },
    find: (role, name, nth) => findRef(text(), role, name, nth),
    async call(tool, input) {
      const reply = replyOf('', { tool, input })
      messages.push(reply.message)
      const { kind, observed = [] } = await world.step(reply, { signal, messages, turn: turn++ })
      messages.push(...observed)
      isOver = kind === 'end'
      return text()
    },
    report: async () => (await world.report?.()) ?? null,
    fork: async () => byHand(await world.fork!({ signal }), [...messages]),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

/** The reference of an element in a page as it was read; names are compared whole. */
export function findRef(text: string, role: string, name?: string, nth = 0): string {
  const lines = [...text.matchAll(/- (\w+)(?: "((?:[^"\\]|\\.)*)")?[^\n]*?\[ref=(\w+)\]/g)]
  const found = lines.filter(line => line[1] === role && (name === undefined || line[2] === name))
  const ref = found[nth]?.[3]
  if (ref === undefined) throw new Error(`no ${role} ${name} number ${nth} in:\n${text}`)
  return ref
}

/** A turn of somebody who reads the page: a tool with its input, or the last word. */
export type Move = (text: string) => { readonly tool: string; readonly input: object } | string

/** Plays moves one after the other; gives the named parts of the reward. */
export async function scoreMoves<Data>(
  environment: Environment<Data>,
  task: Task<Data>,
  moves: readonly Move[],
): Promise<Readonly<Record<string, number>>> {
  const lanes = makeLanes({ policy: 4, tools: 4, environment: 4, reward: 4 })
  const player: Player<Data> = ({ messages, turn }) => {
    const move = moves[turn]?.(textOf(messages.at(-1)!.content))
    if (move === undefined) return undefined
    return typeof move === 'string' ? replyOf(move) : replyOf('', move)
  }
  const call = { seed: 1, signal, lanes, player, turns: moves.length }
  const { parts } = await scorePlay(environment, task, call)
  return Object.fromEntries(parts.map(part => [part.name, part.score]))
}
