import type { Call } from '../../base/core/call.ts'
import type { Condensation, Condensing } from '../../base/core/condenser.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import { standaloneCall } from '../../engine/condensers/standalone.ts'
import type { CondenseSettings } from '../../engine/rollout/attempt.ts'
import type { Reopening } from '../../engine/rollout/reopen.ts'

/**
 * The condenser of a reopened trajectory, with the memory it had then, so that condensed blocks can be
 * recalled. Undefined if the policy was never offered the recall tool.
 */
export async function reopenCondensing(
  { condenser }: CondenseSettings,
  { tree, trajectory, turn }: Reopening,
  call: Call,
): Promise<Condensing | undefined> {
  const past = pastOf(trajectory, turn)
  const asking = standaloneCall(trajectory.turns[0]!.messages, call)
  const condensing = (await condenser.reopen?.(past, asking)) ?? condenser.open()
  const name = condensing.recall?.definition.function.name
  const isOffered = name === undefined || tree.tools.some(tool => tool.function.name === name)
  return isOffered ? condensing : undefined
}

/** What was condensed before a turn, each time with what was shown until then. */
function pastOf({ views = [], messages, turns }: Trajectory, turn: number): Condensation[] {
  const opening = turns[0]!.messages
  return views
    .filter(view => view.turn <= turn && !view.examples)
    .map(({ turn, shown: after, from }, index) => {
      const last = views[index - 1]
      const before = [...(last?.shown ?? []), ...messages.slice(last?.from ?? 0, from)]
      return { turn, opening, before, after }
    })
}
