import { z } from 'zod'
import { count, setting, text } from '../setting.ts'

/** How success is measured. */
export const evaluation = {
  /** Attempts per task. @default 1 */
  trials: setting(count, 'Attempts per task in an evaluation', {
    argument: 'N',
    default: 1,
    commands: ['eval'],
    usedIn: 'run',
  }),
  /** The reward from which on a task counts as solved. @default 1 */
  successAt: setting(() => z.number(), 'An attempt with at least this reward is a success', {
    argument: 'REWARD',
    default: 1,
    commands: ['eval', 'train'],
    usedIn: 'run',
  }),
  /** The k of pass@k and pass^k. @default 1 and the powers of 2 up to the number of trials */
  k: setting(() => z.array(count()), 'The k of pass@k and pass^k', {
    argument: 'K',
    isList: true,
    commands: ['eval'],
    usedIn: 'run',
  }),
  results: setting(text, 'Where an evaluation writes its results', {
    argument: 'FILE',
    commands: ['eval'],
    usedIn: 'run',
    inCode: 'no option: write what evaluate gives',
  }),
} as const
