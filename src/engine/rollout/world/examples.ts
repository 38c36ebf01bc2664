import type { Message } from '@espalier/text'
import type { TaskId } from '../../../base/core/ids.ts'
import { hear, show, type Walk } from '../walk.ts'

/** A conversation that is shown to the policy before its task. */
export interface Example {
  readonly messages: readonly Message[]
  /** The task it solves, if that is known: whoever attempts that task is shown another one. */
  readonly task?: TaskId
}

/** Conversations to show, in order, and how many of them. */
export interface Examples {
  readonly pool: readonly Example[]
  readonly count: number
}

/** What is shown at the moment: training may show fewer as success grows. */
export interface ShownExamples {
  readonly now: Examples
}

/** Opens the conversation: what the world says, and for the policy the examples between its rules and its task. */
export function hearOpening(walk: Walk, opening: readonly Message[]): void {
  hear(walk, opening)
  const { context, attempt } = walk
  const examples = context.examples ? chosenFor(attempt.task.id, context.examples.now) : []
  if (examples.length === 0) return
  const start = opening.findLastIndex(isRule) + 1
  const turns = examples.flatMap(turnsOf)
  const shown = [...opening.slice(0, start), ...turns, ...opening.slice(start)]
  show(walk, shown, 'examples', { start, end: start + turns.length })
}

/** The examples for a task: the first of the pool that do not give its solution away. */
function chosenFor(task: TaskId, { pool, count }: Examples): readonly Example[] {
  return pool.filter(each => each.task === undefined || each.task !== task).slice(0, count)
}

/** An example without its own rules, and without what the world said when it was over. */
function turnsOf({ messages }: Example): readonly Message[] {
  const last = messages.findLastIndex(({ role }) => role !== 'user')
  return messages.slice(0, last + 1).filter(message => !isRule(message))
}

/** Whether a message says how to behave, not what to do. */
function isRule({ role }: Message): boolean {
  return role === 'system' || role === 'developer'
}
