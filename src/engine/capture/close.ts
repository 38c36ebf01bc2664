import type { Message, ToolDefinition } from '@espalier/text'
import { type Json, seatGroup, trajectoryId, treeId } from '../../base/core/ids.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import type { Trajectory, TrajectoryEvent, Turn, View } from '../../base/core/trajectory.ts'
import { plantTree, type Tree } from '../../base/core/tree.ts'
import type { Attempt } from '../rollout/attempt.ts'
import { recordCall } from './call-record.ts'
import { leavesOf, type PlantedTurn, plantPaths } from './harvest.ts'
import type { Seat, Tally } from './seat.ts'
import type { CapturedTurn } from './turn.ts'
import { sideEvents } from './why/side.ts'

/** How a seat's conversations ended. */
export interface Ending {
  readonly outcome: Outcome
  readonly report?: Json
  readonly answer?: string
  readonly reward?: number
  readonly seconds: number
}

/** The tree of one seat: every conversation a path, all of them one trajectory. */
export function closeSeat(attempt: Attempt, seat: Seat, ending: Ending): Tree {
  const { context, known, name, tally } = seat
  const tree = plantTree({
    id: treeId(seatGroup(attempt.group, name), attempt.member),
    task: attempt.task.id,
    member: attempt.member,
    ...(name !== '' && { seat: name }),
    seed: attempt.seed,
    sampling: context.sampling,
    tools: allTools(known.turns),
    renderer: `${context.renderer.name} (${context.renderer.history})`,
  })
  const { turns, end } = plantPaths(tree, leavesOf(known.turns))
  const said = linearise(turns)
  const forks = turns.flatMap(({ captured, fork }) =>
    fork ? { at: captured.keep, reason: `${fork.cause}: ${fork.reason}` } : [],
  )
  tree.end({
    id: trajectoryId(tree.id, 0),
    end,
    outcome: ending.outcome,
    ...said,
    turns: withReward(said.turns, ending.reward),
    ...(ending.report !== undefined && { report: ending.report }),
    ...(ending.answer !== undefined && { answer: ending.answer }),
    fidelity: { kind: fidelityOf(tally, forks.length), forks },
    usage: { sampled: tally.sampled, prompt: tally.prompted },
    events: [
      ...forkEvents(turns),
      ...sideEvents(turns),
      ...tally.events.map(event => ({ ...event, turn: 0 })),
    ],
    volatile: volatileOf(tally, ending),
    share: 1,
  })
  return tree
}

function fidelityOf({ isReencoded }: Tally, forks: number): Trajectory['fidelity']['kind'] {
  if (isReencoded) return 're-encoded'
  return forks > 0 ? 'forked' : 'exact'
}

function volatileOf(
  { seconds: policy, cached, servers }: Tally,
  { seconds }: Ending,
): Trajectory['volatile'] {
  const environment = Math.max(0, seconds - policy)
  return {
    seconds: { policy, tools: 0, environment, reward: 0 },
    cached,
    servers: [...servers].sort(),
  }
}

/** All tools that were ever offered, each as it was first. */
function allTools(turns: readonly CapturedTurn[]): readonly ToolDefinition[] {
  const lists = new Set(turns.map(({ tools }) => tools))
  if (lists.size === 1) return [...lists][0]!
  const byName = new Map<string, ToolDefinition>()
  for (const list of lists) {
    for (const tool of list) {
      if (!byName.has(tool.function.name)) byName.set(tool.function.name, tool)
    }
  }
  return [...byName.values()].sort((a, b) => (a.function.name < b.function.name ? -1 : 1))
}

/** A reward that the agent itself gave is recorded on the last turn. */
function withReward(turns: readonly Turn[], reward: number | undefined): readonly Turn[] {
  if (reward === undefined || turns.length === 0) return turns
  return turns.with(-1, { ...turns.at(-1)!, reward })
}

/** What every fork cost: tokens that had to be read, and how many of them repeat what was known. */
function forkEvents(turns: readonly PlantedTurn[]): readonly TrajectoryEvent[] {
  return turns.flatMap(({ fork, captured: { given, keep } }, turn) => {
    if (!fork) return []
    const figures = { read: given.length, kept: keep }
    return { kind: `fork:${fork.cause}`, turn, detail: fork.reason, figures }
  })
}

/** One conversation after the other: what was said, what each path showed, which calls were made. */
function linearise(
  planted: readonly PlantedTurn[],
): Pick<Trajectory, 'messages' | 'turns' | 'calls'> & Partial<Pick<Trajectory, 'views'>> {
  const messages: Message[] = []
  const turns: Turn[] = []
  const views: View[] = []
  const calls: CallRecord[] = []
  planted.forEach(({ captured, fork, turn }, index) => {
    const known = fork ? fork.shared : captured.known
    const observed = captured.messages.slice(known)
    if (fork) {
      const shown = captured.messages.slice(0, known)
      views.push({ turn: index, by: 'agent', shown, from: messages.length })
    }
    messages.push(...observed)
    turns.push({ ...turn, messages: messages.length })
    messages.push(captured.message)
    const next = planted[index + 1]
    const answered = next && !next.fork ? next.captured.messages.slice(next.captured.known) : []
    const place = { turn: index, tools: captured.tools, observed: answered }
    calls.push(...(captured.message.tool_calls ?? []).map(call => recordCall(call, place)))
  })
  return { messages, turns, calls, ...(views.length > 0 && { views }) }
}
