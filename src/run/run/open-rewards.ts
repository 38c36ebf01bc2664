import type { Environment } from '../../base/core/environment.ts'
import { parsePartName } from '../../base/core/names/part-name.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { RewardPart } from '../../base/core/reward.ts'
import { makeReward } from '../../engine/rewards/registry.ts'
import { isScorer, scorer } from '../../engine/rewards/scorer.ts'
import { openNamed } from '../settings/open-named.ts'
import { openSpeaker } from '../settings/open-speaker.ts'
import { isUserPart, loadUserPart, splitUserPart } from '../settings/user-part.ts'
import type { AttemptOptions } from './roll-options.ts'

/** Rewards by name, the user's own in files, or functions; nothing if none are given. */
export async function openRewards(
  names: AttemptOptions['reward'],
  speaker: string | undefined,
): Promise<Environment['reward'] | undefined> {
  if (!names || !isNames(names)) return names
  const needs =
    speaker === undefined
      ? {}
      : { speaker: await openNamed(`--judge ${speaker}`, () => openSpeaker(speaker)) }
  const parts: Record<string, RewardPart> = {}
  for (const name of names) {
    const part = isUserPart(name)
      ? await loadUserPart(name)
      : await openNamed(`--reward ${name}`, () => makeReward(name, needs))
    parts[rewardLabel(name, parts)] = toRewardPart(name, part)
  }
  return parts
}

/** A part's label in results: its export or name, with its variant if the name alone is in use. */
function rewardLabel(name: string, taken: Readonly<Record<string, RewardPart>>): string {
  if (isUserPart(name)) return splitUserPart(name)[1] ?? name
  const { name: plain, variant } = parsePartName(name)
  const label = plain === 'trajectory' ? `${plain}:${variant}` : plain
  return label in taken ? name : label
}

/** A part of a file: a reward of ours with its weight, or anything that scores. */
function toRewardPart(name: string, part: unknown): RewardPart {
  if (isScorer(part)) return scorer(part)
  if (typeof part === 'object' && part !== null && 'weight' in part && 'score' in part) {
    return part as RewardPart
  }
  throw new SettingError(
    `--reward ${name}: this is not a reward function, nor a scorer (a function of { input, output, expected }, or an object with one as \`scorer\` or \`run\`)`,
  )
}

const isNames = (reward: NonNullable<AttemptOptions['reward']>): reward is readonly string[] =>
  Array.isArray(reward)
