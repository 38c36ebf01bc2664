import { z } from 'zod'
import { count, setting, text } from '../setting.ts'

/** Attempts that branch, and contexts that grow long. */
export const trees = {
  /** How an attempt is rolled: by name, or your own. @default 'chain' */
  strategy: setting(() => z.enum(['chain', 'tree', 'step']), 'How attempts are rolled', {
    argument: 'chain|tree|step',
    default: 'chain',
    commands: ['roll', 'eval', 'train', 'rollouts'],
    usedIn: 'threads',
  }),
  /** Where a tree branches: a name with options, or your own. @default at fixed turns */
  branch: setting(text, 'Where a tree branches', {
    argument: 'NAME[:ITEM,…]',
    commands: ['roll', 'eval', 'train', 'rollouts'],
    usedIn: 'threads',
  }),
  /** Most endings of one tree. @default 8 for trees, else 1 */
  leaves: setting(count, 'Most endings of one tree', {
    argument: 'N',
    default: 8,
    commands: ['roll', 'eval', 'train', 'rollouts'],
    usedIn: 'threads',
  }),
  /** Turns of the past that a step is shown. @default 3 */
  stepHistory: setting(() => z.int().min(0), 'Turns of the past that a step is shown', {
    argument: 'N',
    default: 3,
    commands: ['roll', 'eval', 'train', 'rollouts'],
    usedIn: 'threads',
  }),
  /** The condenser for long contexts: a name with options, or an opened one. @default none */
  condense: setting(text, 'How long contexts are condensed', {
    argument: 'NAME[:ITEM,…]',
    commands: ['roll', 'eval', 'train', 'rollouts'],
    usedIn: 'threads',
  }),
} as const
