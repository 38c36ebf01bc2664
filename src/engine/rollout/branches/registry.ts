import {
  findPart,
  type OptionValues,
  type PartShape,
} from '../../../base/core/names/part-options.ts'
import type { BranchPolicy } from '../branch.ts'
import { arpoBranches } from './arpo.ts'
import { bestFirstBranches } from './best-first.ts'
import { fixedBranches } from './fixed.ts'
import { toolErrorBranches } from './tool-error.ts'
import { treeGrpoBranches } from './tree-grpo.ts'
import { treeRlBranches } from './tree-rl.ts'

interface BranchFactory extends PartShape {
  readonly about: string
  open(options: OptionValues, vocabulary: number): BranchPolicy
}

/** The branch policies that can be named. */
const branchPolicies: Readonly<Record<string, BranchFactory>> = {
  fixed: {
    about: 'Every turn up to a depth is continued several times.',
    options: { width: 'count', depth: 'whole' },
    open: options => fixedBranches(options),
  },
  arpo: {
    about: 'Branches where entropy rises after a tool result.',
    options: {
      initial: 'count',
      beam: 'count',
      chance: 'share',
      weight: 'amount',
      tokens: 'count',
      measure: ['after', 'before'],
    },
    open: (options, vocabulary) => arpoBranches({ ...options, vocabulary }),
  },
  'tree-grpo': {
    about: 'Expands random turns of a finished tree.',
    options: { expansions: 'count', rounds: 'whole' },
    open: options => treeGrpoBranches(options),
  },
  'tree-rl': {
    about: 'Branches before the tokens that surprised most.',
    options: { tokens: 'count', branches: 'count', rounds: 'whole' },
    open: options => treeRlBranches(options),
  },
  'tool-error': {
    about: 'Branches after a tool’s error.',
    options: { width: 'count' },
    open: options => toolErrorBranches(options),
  },
  'best-first': {
    about: 'Grows from the turn that promises most, by the rewards below it.',
    options: { exploration: 'amount' },
    open: options => bestFirstBranches(options),
  },
}

/** Opens a branch policy as it is named on a command line: `fixed:width=2,depth=3`. */
export function openBranchPolicy(text: string, vocabulary: number): BranchPolicy {
  const { factory, values } = findPart('branch policy', text, branchPolicies)
  return factory.open(values, vocabulary)
}
