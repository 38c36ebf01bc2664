import type { TaskId, TrajectoryId } from '../src/base/core/ids.ts'
import type { RewardInput } from '../src/base/core/reward.ts'
import { plainTrajectory } from '../src/base/core/trajectory.ts'

/** What a reward is given of an attempt with these calls that ended with this answer. */
export function rewardInput(
  calls: readonly { readonly tool: string; readonly input: unknown }[],
  { input = '', output = '', expected = '' } = {},
): RewardInput {
  const outcome = { kind: 'completed' } as const
  return {
    task: { id: 't' as TaskId, data: { input, expected } },
    messages: [],
    answer: output,
    calls: calls.map(call => ({ turn: 0, id: '1', output: '', seconds: 0, ...call })),
    report: undefined,
    outcome,
    trajectory: plainTrajectory({ id: 't' as TrajectoryId, outcome }),
    seat: '',
  }
}
