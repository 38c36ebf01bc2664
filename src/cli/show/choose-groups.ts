import type { Group } from '../../base/core/group.ts'
import type { GroupRecord } from '../../run/store/group-record.ts'
import type { RunReader } from '../../run/store/store.ts'
import { MisuseError } from '../command.ts'

/** Which groups of a run are shown. */
export interface GroupChoice {
  readonly step?: string | undefined
  readonly failed?: string | undefined
  readonly reward?: string | undefined
  readonly task?: string | undefined
  readonly limit?: string | undefined
}

/** Whether any choice was made; otherwise the run's overview is shown. */
export function isChosen(choice: GroupChoice): boolean {
  return choices.some(name => choice[name] !== undefined)
}

/** What groups are chosen by. */
export const choices = ['step', 'failed', 'reward', 'task'] as const satisfies (keyof GroupChoice)[]

/** The newest groups that fit a choice, oldest first, and how many fit in all. */
export async function chooseGroups(
  reader: RunReader,
  choice: GroupChoice,
  most: number,
): Promise<{ readonly groups: readonly Group[]; readonly fitting: number }> {
  const limit = choice.limit === undefined ? most : countOf('limit', choice.limit)
  const records = reader.records()
  // A full task id means that task only, even if it is part of other ids.
  const isWhole = records.some(({ task }) => task.id === choice.task)
  const chosen = records.filter(fitting(choice, isWhole))
  const groups: Group[] = []
  for (const { id } of limit === 0 ? [] : chosen.slice(-limit)) {
    groups.push((await reader.group(id))!.group)
  }
  return { groups, fitting: chosen.length }
}

function fitting(
  { step, failed, reward, task }: GroupChoice,
  isWhole: boolean,
): (group: GroupRecord) => boolean {
  const wantedStep = step === undefined ? undefined : countOf('step', step)
  const rewardFits = reward === undefined ? undefined : readReward(reward)
  return group =>
    (wantedStep === undefined || group.step === wantedStep) &&
    (failed === undefined || group.unscored.length > 0) &&
    (task === undefined || (isWhole ? group.task.id === task : group.task.id.includes(task))) &&
    (!rewardFits || group.members.some(member => rewardFits(member.reward.total)))
}

function countOf(flag: string, word: string): number {
  const count = Number(word)
  if (Number.isInteger(count) && count >= 0) return count
  throw new MisuseError(`--${flag} is a whole number, not "${word}"`)
}

const comparisons: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
  '': (a, b) => a === b,
}

/** Reads `0`, `<0.5`, `>=1`. */
function readReward(word: string): (reward: number) => boolean {
  const [, sign = '', digits = ''] = /^(<=|>=|<|>)?\s*(-?[\d.]+)$/.exec(word.trim()) ?? []
  const value = Number(digits)
  if (digits === '' || Number.isNaN(value)) {
    throw new MisuseError(`--reward is a number, or one behind <, <=, > or >=, not "${word}"`)
  }
  return reward => comparisons[sign]!(reward, value)
}
