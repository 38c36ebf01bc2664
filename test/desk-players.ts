import { type Message, textOf } from '@espalier/text'
import { pick, type Random, random, seedOf } from '../src/base/math/random.ts'
import { answersTo } from '../src/engine/environments/desk/make-tasks.ts'
import { ages, statuses, stocks } from '../src/engine/environments/desk/order.ts'
import {
  type Decision,
  orderWords,
  type RequestKind,
} from '../src/engine/environments/desk/rules.ts'
import { understand } from '../src/engine/environments/desk/speech.ts'
import {
  type DeskRequest,
  type DeskTask,
  rightDecision,
} from '../src/engine/environments/desk/task.ts'
import type { Player, Situation } from '../src/engine/environments/play.ts'
import { replyOf } from '../src/engine/environments/reply.ts'

/** Decides about something that a customer wants done. */
export type Judge = (about: {
  readonly data: DeskTask
  readonly request: DeskRequest
  /** The words of the order as a look-up showed them; none if nobody looked. */
  readonly shown: readonly string[]
  /** Which of the task's requests it is. */
  readonly index: number
}) => Decision

/** A player that handles a customer correctly and leaves the decision to `judge`. */
export function deskPlayer(
  judge: Judge,
  { looks = () => true }: { readonly looks?: (situation: Situation<DeskTask>) => boolean } = {},
): Player<DeskTask> {
  return situation => {
    const { data } = situation.task
    const known = gather(situation)
    const request = data.requests[known.index]
    if (!request) return undefined
    if (known.isTransferred || known.hasActed) return replyOf('done')
    if (known.number === undefined) {
      if (known.name === undefined) return replyOf('which order?')
      return replyOf('', { tool: 'find', input: { name: known.name } })
    }
    const id = known.number
    if (known.shown.length === 0 && looks(situation)) {
      return replyOf('', { tool: 'order', input: { id } })
    }
    const decision = judge({ data, request, shown: known.shown, index: known.index })
    if (decision.kind === 'refuse') return replyOf(`sorry, ${decision.reason}`)
    if (decision.kind === 'transfer') return replyOf('', { tool: 'transfer' })
    return replyOf('', { tool: request.kind, input: { id, ...argumentOf(request) } })
  }
}

function argumentOf({ kind, value }: DeskRequest): Readonly<Record<string, string>> {
  if (value === undefined) return {}
  return kind === 'address' ? { street: value } : { colour: value }
}

/** Shows how it is done. */
export const demonstrateDesk: Player<DeskTask> = deskPlayer(({ data, request }) =>
  rightDecision(data, request),
)

/**
 * A novice who knows the tools and the form of answers, but hardly the rules: about one decision in
 * three follows them; the others are random, sometimes without a look-up, with any word as the reason.
 */
export function novicePlayer(seed: number): Player<DeskTask> {
  const chance = (data: DeskTask, ...about: readonly (string | number)[]): Random =>
    random(seedOf(seed, 'novice', JSON.stringify(data), ...about))
  return deskPlayer(
    ({ data, request, shown, index }) => {
      const draw = chance(data, index)
      if (shown.length > 0 && draw() < knowing) return rightDecision(data, request)
      return chanceDecision(request.kind, shown, draw)
    },
    { looks: ({ task, turn }) => chance(task.data, 'looks', turn)() > 0.1 },
  )
}

/** How many of a novice's decisions follow the rules. */
const knowing = 0.35

/** A random decision, each as likely as it is right. */
export function chanceDecision(
  kind: RequestKind,
  shown: readonly string[],
  draw: Random,
): Decision {
  const found = pick(answersTo(kind), draw)
  if (found === 'act' || found === 'transfer') return { kind: found }
  const words: readonly string[] = found === 'status' ? statuses : kind === 'refund' ? ages : stocks
  return { kind: 'refuse', reason: shown.find(word => words.includes(word)) ?? pick(words, draw) }
}

/** Policies that read nothing; tests check that none of them is rewarded much. */
export const shortcuts: Readonly<Record<string, Player<DeskTask>>> = {
  'always-comply': deskPlayer(() => ({ kind: 'act' })),
  'always-transfer': deskPlayer(() => ({ kind: 'transfer' })),
  ...Object.fromEntries(
    [...orderWords].map(reason => [
      `always-refuse:${reason}`,
      deskPlayer(() => ({ kind: 'refuse', reason })),
    ]),
  ),
  'refuse-with-the-status': deskPlayer(({ shown }) => ({
    kind: 'refuse',
    reason: shown.find(word => (statuses as readonly string[]).includes(word)) ?? 'shipped',
  })),
}

interface Known {
  index: number
  number: number | undefined
  name: string | undefined
  shown: readonly string[]
  hasActed: boolean
  isTransferred: boolean
}

/** What the conversation so far says about the open request. */
function gather({ task: { data }, messages }: Situation<DeskTask>): Known {
  let known = fresh(data, 0)
  const calls = new Map<string, string>()
  for (const message of messages) {
    if (message.role === 'user') hear(known, textOf(message.content).trim())
    else if (message.role === 'tool')
      read(known, calls.get(message.tool_call_id), textOf(message.content))
    else if (message.role === 'assistant') {
      for (const { id, function: called } of message.tool_calls ?? []) calls.set(id, called.name)
      if (isClosing(known, message)) known = fresh(data, known.index + 1)
    }
  }
  return known
}

function fresh({ level, requests }: DeskTask, index: number): Known {
  const number = level === 1 ? requests[index]?.order : undefined
  return {
    index,
    number,
    name: undefined,
    shown: [],
    hasActed: false,
    isTransferred: false,
  }
}

/** Only answers to a question are one word long. */
function hear(known: Known, text: string): void {
  if (/^\d+$/.test(text)) known.number ??= Number(text)
  else if (/^[A-Z][a-z]+$/.test(text)) known.name ??= text
}

function read(known: Known, tool: string | undefined, output: string): void {
  if (tool === 'find') known.number ??= Number(output.split(' ')[0])
  else if (tool === 'order') known.shown = output.split(' ')
  else if (tool === 'transfer') known.isTransferred = true
  else known.hasActed = true
}

function isClosing(known: Known, message: Extract<Message, { role: 'assistant' }>): boolean {
  if (message.tool_calls?.length) return false
  const { kind } = understand(textOf(message.content))
  return known.isTransferred || kind === 'done' || kind === 'refusal'
}
