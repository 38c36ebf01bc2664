import { type PythonDict, PythonFloat, type PythonValue } from '@espalier/text/python'
import type { TauReward } from './reward.ts'
import type { TauAction, TauTask } from './task.ts'

/** The `info` of an attempt in a result file, whether it came to its end or not. */
export function toInfo(parts: {
  readonly task: TauTask
  readonly source: string
  /** Of the user's last reply; absent if no price is known. */
  readonly userCost: number | undefined
  readonly reward: TauReward | undefined
}): PythonDict {
  return new Map<string, PythonValue>([
    ['task', taskToPython(parts.task)],
    ['source', parts.source],
    ['user_cost', parts.userCost === undefined ? null : new PythonFloat(parts.userCost)],
    ['reward_info', parts.reward === undefined ? null : rewardToPython(parts.reward)],
  ])
}

/** A task as the original dumps it. */
export function taskToPython(task: TauTask): PythonDict {
  return new Map<string, PythonValue>([
    ['user_id', task.userId],
    ['actions', task.actions.map(actionToPython)],
    ['instruction', task.instruction],
    ['outputs', task.outputs],
  ])
}

/** A reward as the original dumps it. */
export function rewardToPython({ reward, info, actions }: TauReward): PythonDict {
  const verdict: (readonly [string, PythonValue])[] =
    'outputs' in info
      ? [
          ['r_outputs', new PythonFloat(info.r_outputs)],
          ['outputs', new Map(info.outputs)],
        ]
      : [
          ['r_actions', new PythonFloat(info.r_actions)],
          ['gt_data_hash', info.gt_data_hash],
        ]
  return new Map<string, PythonValue>([
    ['reward', new PythonFloat(reward)],
    ['info', new Map(verdict)],
    ['actions', actions.map(actionToPython)],
  ])
}

function actionToPython({ name, kwargs }: TauAction): PythonDict {
  return new Map<string, PythonValue>([
    ['name', name],
    ['kwargs', kwargs],
  ])
}
