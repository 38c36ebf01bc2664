import type { Alarm, Sentinel } from './sentinel.ts'

/** Warns if the condenser did not shorten the first opening it was given. */
export function nothingCondensed(): Sentinel {
  let isOver = false
  return {
    name: 'nothing-condensed',
    seeTree({ task, trajectories }): Alarm | undefined {
      const events = trajectories.flatMap(trajectory => trajectory.events)
      if (isOver || events.length === 0) return undefined
      const nothing = events.find(({ kind }) => kind === 'nothing-condensed')
      isOver = nothing !== undefined || events.some(({ kind }) => kind === 'condensed')
      if (!nothing) return undefined
      return {
        message: `the opening of task ${task} was not condensed: ${nothing.detail}`,
        likely:
          'texts as short as that are read as they are: go without --condense, or lower the limit, as in keyword:minimum=80',
      }
    },
  }
}
