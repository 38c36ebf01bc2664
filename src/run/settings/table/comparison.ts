import { z } from 'zod'
import { leafWeightNames } from '../../../base/math/credit.ts'
import { defaultRewardSeconds } from '../../../engine/rollout/attempt.ts'
import { setting, text, texts } from '../setting.ts'

/** What attempts are worth, and how they are compared. */
export const comparison = {
  /** How the endings of a tree share their tokens. @default 'uniform' */
  weighting: setting(
    () => z.enum(leafWeightNames),
    'How the endings of a tree share their tokens',
    {
      argument: leafWeightNames.join('|'),
      default: 'uniform',
      commands: ['roll', 'train', 'gateway', 'rollouts', 'fork'],
      usedIn: 'run',
    },
  ),
  /** Used instead of the environment's own reward: names as on the command line, or functions. */
  reward: setting(texts, "Rewards to use instead of the environment's own", {
    argument: 'NAME|FILE#EXPORT',
    isList: true,
    usedIn: 'threads',
  }),
  /** The model that a reward named `judge` asks. */
  judge: setting(text, 'The model that `--reward judge` asks, such as openai:URL', {
    argument: 'URI',
    usedIn: 'threads',
  }),
  /** Seconds that each part of a reward may take before it fails the attempt. @default 600 */
  rewardSeconds: setting(() => z.number().positive(), 'Seconds each part of a reward may take', {
    argument: 'SECONDS',
    default: defaultRewardSeconds,
    usedIn: 'threads',
  }),
  /** Judges that drop trajectories, by name or your own. @default none */
  filters: setting(texts, 'Judges that drop trajectories, with a reason', {
    argument: 'NAME[:ITEM,…]',
    flag: 'filter',
    isList: true,
    default: [],
    commands: ['roll', 'train', 'gateway', 'rollouts', 'fork'],
    usedIn: 'run',
  }),
  /** How the members of a group are compared. @default 'grpo' */
  advantage: setting(text, 'How the members of a group are compared', {
    argument: 'NAME',
    default: 'grpo',
    commands: ['roll', 'train', 'gateway', 'rollouts', 'fork'],
    usedIn: 'run',
  }),
  /** A penalty on rewards of long trajectories. @default none */
  overlong: setting(
    text,
    'A penalty on rewards that grows over the last tokens before a maximum: soft:maximum=N,buffer=N',
    {
      argument: 'NAME[:ITEM,…]',
      commands: ['roll', 'train', 'gateway', 'rollouts'],
      usedIn: 'threads',
    },
  ),
  /** What void turns cost, if their attempts are not dropped by the filter `void-turns`. @default nothing */
  voidTurns: setting(
    text,
    'What a turn with neither a call nor an answer costs: mask keeps it alone out of the loss, penalty:size=C takes C off the compared reward',
    {
      argument: 'mask|penalty[:ITEM,…]',
      commands: ['roll', 'train', 'gateway', 'rollouts'],
      usedIn: 'threads',
    },
  ),
} as const
