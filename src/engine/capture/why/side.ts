import { type Message, textOf } from '@espalier/text'
import type { TrajectoryEvent } from '../../../base/core/trajectory.ts'
import type { PlantedTurn } from '../harvest.ts'
import type { CapturedTurn } from '../turn.ts'
import { summaryIn } from './summary.ts'

/** What an agent asks beside its own work: a conversation of another kind, by the turn that it begins with, or a summary. */
export function sideEvents(turns: readonly PlantedTurn[]): readonly TrajectoryEvent[] {
  const all = turns.map(({ captured }) => captured)
  const summaries = turns.map(({ captured: { messages }, fork }) =>
    fork?.cause === 'compaction' ? summaryIn(messages, all) : undefined,
  )
  return turns.flatMap(({ captured, fork }, turn) => {
    const begins = turn === 0 || fork?.cause === 'conversation'
    const side = summaries.includes(captured) ? compacting : begins && sideOf(captured, all)
    return side ? [{ kind: `side:${side.kind}`, turn, detail: side.detail }] : []
  })
}

const compacting: Side = { kind: 'summary', detail: 'a conversation goes on from it' }

interface Side {
  readonly kind: 'sub-agent' | 'summary' | 'title'
  readonly detail: string
}

/** What a conversation is for, if that can be told from what began it. */
function sideOf(turn: CapturedTurn, all: readonly CapturedTurn[]): Side | undefined {
  const caller = callerOf(turn, all)
  if (caller !== undefined) return { kind: 'sub-agent', detail: `a call of ${caller} began it` }
  const hasOthers = all.some(({ tools }) => tools.length > 0)
  if (turn.tools.length > 0 || !hasOthers) return undefined
  const asked = turn.messages.map(({ content }) => textOf(content)).join('\n')
  if (/\btitles?\b/i.test(asked)) return { kind: 'title', detail: 'it asks for a title' }
  if (/\bsummar/i.test(asked)) return { kind: 'summary', detail: 'it asks for a summary' }
  return undefined
}

/** Shorter texts may stand in a call by chance. */
const leastTask = 12

/** The tool whose call holds what a conversation was begun with. */
function callerOf(turn: CapturedTurn, all: readonly CapturedTurn[]): string | undefined {
  const task = firstWords(turn.messages)
  if (task.length < leastTask) return undefined
  const written = JSON.stringify(task).slice(1, -1)
  for (const { message, ended } of all) {
    if (ended > turn.began) continue
    const calls = message.tool_calls ?? []
    const caller = calls.find(({ function: { arguments: given } }) =>
      normal(given).includes(written),
    )
    if (caller) return caller.function.name
  }
  return undefined
}

/** The last part of the first thing that a user says: harnesses put reminders before it. */
function firstWords(messages: readonly Message[]): string {
  const first = messages.find(({ role }) => role === 'user')
  const text = textOf(first?.content ?? '').trim()
  return text
    .split(/<\/[\w-]+>\s*/)
    .at(-1)!
    .trim()
}

/** Arguments as JSON writes them, however the model spaced them. */
function normal(given: string): string {
  try {
    return JSON.stringify(JSON.parse(given))
  } catch {
    return given
  }
}
