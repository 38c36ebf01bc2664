import { z } from 'zod'
import { plainSampling } from '../../../base/core/policy.ts'
import { setting, share, texts } from '../setting.ts'

/** How tokens are drawn. */
export const sampling = {
  temperature: setting(() => z.number().min(0), 'Sampling temperature', {
    argument: 'T',
    default: plainSampling.temperature,
    usedIn: 'threads',
    inCode: 'sampling.temperature',
  }),
  topP: setting(share, 'Nucleus sampling', {
    argument: 'P',
    default: plainSampling.topP,
    usedIn: 'threads',
    inCode: 'sampling.topP',
  }),
  topK: setting(() => z.int().min(0), 'Sample from the K most probable tokens; 0: all', {
    argument: 'K',
    default: plainSampling.topK,
    usedIn: 'threads',
    inCode: 'sampling.topK',
  }),
  minP: setting(
    share,
    'Sample from tokens with at least this share of the best one’s probability',
    { argument: 'P', default: plainSampling.minP, usedIn: 'threads', inCode: 'sampling.minP' },
  ),
  /** Candidates per token to keep with their log-probabilities. @default 0 */
  topLogprobs: setting(
    () => z.int().min(0),
    'Candidates per token to keep with their log-probabilities',
    { argument: 'N', default: 0, usedIn: 'threads' },
  ),
  /** Texts that end a turn. @default none */
  stop: setting(texts, 'Texts that end a turn', {
    argument: 'TEXT',
    isList: true,
    default: [],
    usedIn: 'threads',
  }),
  /** The seed that every random draw comes from. @default 0 */
  seed: setting(() => z.int().min(0), 'The seed that every random draw comes from', {
    argument: 'N',
    default: 0,
    usedIn: 'threads',
  }),
} as const
