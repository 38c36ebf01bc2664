import { parsePartName, UnknownPartError } from '../../core/part-name.ts'
import type { BranchPolicy } from '../branch.ts'
import { arpoBranches } from './arpo.ts'
import { bestFirstBranches } from './best-first.ts'
import { fixedBranches } from './fixed.ts'
import { toolErrorBranches } from './tool-error.ts'
import { treeGrpoBranches } from './tree-grpo.ts'
import { treeRlBranches } from './tree-rl.ts'

interface BranchFactory {
  readonly about: string
  /** Numbers it takes, by name. */
  readonly options: readonly string[]
  /** Words it takes, by name, with what they may be. */
  readonly words?: Readonly<Record<string, readonly string[]>>
  open(options: Readonly<Record<string, number | string>>, vocabulary: number): BranchPolicy
}

/** The branch policies that can be named. */
export const branchPolicies: Readonly<Record<string, BranchFactory>> = {
  fixed: {
    about: 'Every turn up to a depth is continued several times.',
    options: ['width', 'depth'],
    open: options => fixedBranches(options),
  },
  arpo: {
    about: 'Branches where entropy rises after a tool result.',
    options: ['initial', 'beam', 'chance', 'weight', 'tokens'],
    words: { measure: ['after', 'before'] },
    open: (options, vocabulary) => arpoBranches({ ...options, vocabulary }),
  },
  'tree-grpo': {
    about: 'Expands random turns of a finished tree.',
    options: ['expansions', 'rounds'],
    open: options => treeGrpoBranches(options),
  },
  'tree-rl': {
    about: 'Branches before the tokens that surprised most.',
    options: ['tokens', 'branches', 'rounds'],
    open: options => treeRlBranches(options),
  },
  'tool-error': {
    about: 'Branches after a tool’s error.',
    options: ['width'],
    open: options => toolErrorBranches(options),
  },
  'best-first': {
    about: 'Grows from the turn that promises most, by the rewards below it.',
    options: ['exploration'],
    open: options => bestFirstBranches(options),
  },
}

/** Opens a branch policy as it is named on a command line: `fixed:width=2,depth=3`. */
export function openBranchPolicy(text: string, vocabulary: number): BranchPolicy {
  const { name, variant, options } = parsePartName(text)
  const factory = Object.hasOwn(branchPolicies, name) ? branchPolicies[name] : undefined
  if (!factory) throw new UnknownPartError('branch policy', name, Object.keys(branchPolicies))
  if (variant !== undefined) throw new Error(`branch policy "${name}" has no variant "${variant}"`)
  const given = Object.fromEntries(
    [...options].map(([key, value]) => [key, readOption(name, factory, { key, value })]),
  )
  return factory.open(given, vocabulary)
}

function readOption(
  name: string,
  { options, words = {} }: BranchFactory,
  { key, value }: { readonly key: string; readonly value: string },
): number | string {
  if (Object.hasOwn(words, key)) {
    if (words[key]!.includes(value)) return value
    throw new Error(
      `branch policy "${name}": ${key} is ${words[key]!.join(' or ')}, not "${value}"`,
    )
  }
  if (!options.includes(key)) {
    const known = [...options, ...Object.keys(words)].join(', ')
    throw new Error(`branch policy "${name}" has no option "${key}". Known: ${known}.`)
  }
  const number = Number(value)
  if (value === '' || !Number.isFinite(number) || number < 0) {
    throw new Error(`branch policy "${name}": ${key} must be a number from 0 on, not "${value}"`)
  }
  return number
}
