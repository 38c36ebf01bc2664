import { type AssistantMessage, textOf } from '@espalier/text'
import type { Dropped, Filter, Group, Scored, Verdicts } from '../../base/core/group.ts'
import type { TrajectoryId } from '../../base/core/ids.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'

/** From what a dropped trajectory is removed: the loss only, or the group's statistics too. */
export type DropFrom = Dropped['from']

/** A filter that looks at one trajectory at a time; a reason drops it. */
export function perTrajectory(
  name: string,
  from: DropFrom,
  reasonOf: (trajectory: Trajectory, group: Group<Scored>) => string | undefined,
): Filter {
  return {
    name,
    judge(group) {
      const verdicts = new Map<TrajectoryId, { reason: string; from: DropFrom }>()
      for (const { trajectory } of group.members) {
        const reason = reasonOf(trajectory, group)
        if (reason !== undefined) verdicts.set(trajectory.id, { reason, from })
      }
      return verdicts
    },
  }
}

/** A filter that keeps or drops a group as a whole. */
export function perGroup(
  name: string,
  reasonOf: (group: Group<Scored>) => string | undefined,
): Filter {
  return {
    name,
    judge(group): Verdicts {
      const reason = reasonOf(group)
      if (reason === undefined) return new Map()
      return new Map(
        group.members.map(({ trajectory }) => [trajectory.id, { reason, from: 'loss' as const }]),
      )
    },
  }
}

/** A sampled turn as people read it. */
export interface SaidTurn {
  readonly number: number
  readonly message: AssistantMessage
  /** Its text without reasoning. */
  readonly text: string
  readonly calls: readonly CallRecord[]
}

/** The turns of a trajectory with their messages and calls. */
export function turnsOf(trajectory: Trajectory): readonly SaidTurn[] {
  const byTurn = new Map<number, CallRecord[]>()
  for (const call of trajectory.calls) {
    const known = byTurn.get(call.turn)
    if (known) known.push(call)
    else byTurn.set(call.turn, [call])
  }
  return trajectory.turns.flatMap(({ messages }, number) => {
    const message = trajectory.messages[messages]
    if (message?.role !== 'assistant') return []
    return [{ number, message, text: textOf(message.content), calls: byTurn.get(number) ?? [] }]
  })
}
