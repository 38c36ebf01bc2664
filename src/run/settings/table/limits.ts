import { z } from 'zod'
import { defaultLimits } from '../../../engine/rollout/attempt.ts'
import { count, setting, text, texts } from '../setting.ts'

/** What ends an attempt. */
export const limits = {
  /** Watchers that stop a sample early, by name or your own. @default none */
  guards: setting(texts, 'Watchers that stop a sample early', {
    argument: 'NAME[:ITEM,…]',
    flag: 'guard',
    isList: true,
    default: [],
    usedIn: 'threads',
  }),
  maxTurns: setting(count, 'Most samples per trajectory', {
    argument: 'N',
    default: defaultLimits.turns,
    usedIn: 'threads',
    inCode: 'limits.turns',
  }),
  maxRolloutTokens: setting(count, 'Most sampled tokens per trajectory', {
    argument: 'N',
    default: defaultLimits.tokens,
    usedIn: 'threads',
    inCode: 'limits.tokens',
  }),
  maxContext: setting(count, 'Most tokens of a prompt and its answer together', {
    argument: 'N',
    default: defaultLimits.context,
    usedIn: 'threads',
    inCode: 'limits.context',
  }),
  maxNewTokens: setting(count, 'Most sampled tokens per turn', {
    argument: 'N',
    default: defaultLimits.newTokens,
    usedIn: 'threads',
    inCode: 'limits.newTokens',
  }),
  /** Which images attempts may see. @default 32 at one time, of 16777216 pixels each, from nowhere else */
  images: setting(
    text,
    'Images: how many are shown at one time, how large one may be, and a host they may be fetched from',
    {
      argument: 'max=N,pixels=N,from=HOST',
      commands: ['roll', 'eval', 'train', 'gateway', 'rollouts', 'fork'],
      usedIn: 'threads',
    },
  ),
  maxSeconds: setting(() => z.number().positive(), 'Most seconds per trajectory', {
    argument: 'SECONDS',
    usedIn: 'threads',
    inCode: 'limits.seconds',
  }),
  /** Whether a turn cut by its token limit ends the attempt. @default 'end' */
  onLength: setting(
    () => z.enum(['end', 'continue']),
    'After a turn that its token limit cut: end the attempt, or let the turn go on',
    { argument: 'end|continue', default: 'end', usedIn: 'threads' },
  ),
  /** Whether an attempt that ran out of wall-clock time may be scored. @default 'ungraded' */
  onTime: setting(
    () => z.enum(['ungraded', 'graded']),
    'Whether an attempt that ran out of --max-seconds is scored; a slow server is not the policy’s fault',
    { argument: 'ungraded|graded', default: 'ungraded', usedIn: 'threads' },
  ),
} as const
