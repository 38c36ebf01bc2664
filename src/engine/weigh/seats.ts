import {
  type Filter,
  type Group,
  type Scored,
  seatFilter,
  type Unscored,
} from '../../base/core/group.ts'
import { seatGroup } from '../../base/core/ids.ts'
import { type GatherHeader, type GatherOptions, gather } from './gather.ts'

/** A filter for seats whose player does not learn: their trajectories are stored but in no loss. */
function notLearning(reason: string): Filter {
  const dropped = { reason, from: 'loss-and-statistics' } as const
  return {
    name: seatFilter,
    judge: group => new Map(group.members.map(({ trajectory }) => [trajectory.id, dropped])),
  }
}

/** The filters for judging a stored group again; a seat that did not learn still does not. */
export function filtersOf(group: Group, filters: readonly Filter[]): readonly Filter[] {
  const dropped = group.members[0]?.dropped
  return dropped?.filter === seatFilter ? [notLearning(dropped.reason)] : filters
}

/** The groups of one task's attempts, one per seat: members are compared only within their seat. */
export interface SeatGroups {
  readonly learning: readonly Group[]
  /** Groups of seats whose players do not learn; kept for viewing. */
  readonly others: readonly Group[]
}

/** Gathers the members of a group seat by seat; `players` names who plays those that do not learn. */
export function gatherSeats(
  header: GatherHeader,
  members: readonly (Scored | Unscored)[],
  options: GatherOptions & {
    readonly seats: readonly string[]
    readonly players: ReadonlyMap<string, { readonly policy: { readonly name: string } }>
  },
): SeatGroups {
  const { seats, players } = options
  const gathered = (seat: string): Group => {
    const own = members.filter(({ tree }) => tree.seat === seat)
    const player = players.get(seat)
    const filters = player
      ? [notLearning(`played by ${player.policy.name}, which does not learn`)]
      : options.filters
    return gather({ ...header, id: seatGroup(header.id, seat), seat }, own, { ...options, filters })
  }
  return {
    learning: seats.filter(seat => !players.has(seat)).map(gathered),
    others: seats.filter(seat => players.has(seat)).map(gathered),
  }
}
