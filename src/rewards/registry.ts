import type { RewardFunction } from '../core/reward.ts'
import type { Speaker } from '../core/speaker.ts'
import { type PartName, parsePartName, UnknownPartError } from '../names/part-name.ts'
import { exactMatch } from './exact-match.ts'
import { f1 } from './f1.ts'
import { type FormatRule, format } from './format.ts'
import { judge } from './judge.ts'
import { numberMatch } from './number-match.ts'

/** What rewards may need besides their options. */
export interface RewardNeeds {
  /** Who judges. */
  readonly speaker?: Speaker
}

/** A reward that can be opened by name. */
export interface RewardFactory {
  /** One sentence for people. */
  readonly about: string
  /** Its variants and options, as they are written. */
  readonly usage: string
  readonly variants: readonly string[]
  readonly options: readonly string[]
  open(part: PartName, needs: RewardNeeds): RewardFunction
}

/** The rewards that can be named. */
export const builtInRewards: Readonly<Record<string, RewardFactory>> = {
  'exact-match': {
    about: 'The final answer is the task’s answer.',
    usage: 'exact-match',
    variants: [],
    options: [],
    open: exactMatch,
  },
  'number-match': {
    about: 'The last number of the final answer is the task’s answer.',
    usage: 'number-match[:tolerance=1e-6]',
    variants: [],
    options: ['tolerance'],
    open: ({ options }) => numberMatch(numbersOf(options, ['tolerance'])),
  },
  f1: {
    about: 'The share of words that the final answer has in common with the task’s answer.',
    usage: 'f1',
    variants: [],
    options: [],
    open: f1,
  },
  format: {
    about: 'The answer keeps to a format: a box, JSON, or tags in order.',
    usage: 'format:boxed, format:json or format:tags=think+answer',
    variants: ['boxed', 'json'],
    options: ['tags'],
    open: part => format(ruleOf(part)),
  },
  judge: {
    about: 'The verdict of a model over the conversation.',
    usage: 'judge[:scale=10,tries=3]',
    variants: [],
    options: ['scale', 'tries'],
    open: ({ options }, { speaker }) =>
      judge({ speaker: required(speaker), ...numbersOf(options, ['scale', 'tries']) }),
  },
}

/** Opens a reward as it is named on a command line, `NAME[:ITEM,…]`. */
export function openReward(text: string, needs: RewardNeeds = {}): RewardFunction {
  const part = parsePartName(text)
  const known = new Map(Object.entries(builtInRewards))
  const factory = known.get(part.name)
  if (!factory) throw new UnknownPartError('reward', part.name, [...known.keys()])
  const { usage, variants, options } = factory
  const strange = [
    ...(part.variant === undefined || variants.includes(part.variant) ? [] : [part.variant]),
    ...[...part.options.keys()].filter(key => !options.includes(key)),
  ]
  if (strange.length === 0) return factory.open(part, needs)
  throw new TypeError(`Reward "${text}": it has no "${strange.join('", "')}". Write ${usage}.`)
}

function numbersOf<Key extends string>(
  options: PartName['options'],
  keys: readonly Key[],
): { [Name in Key]?: number } {
  const numbers: { [Name in Key]?: number } = {}
  for (const key of keys) {
    const text = options.get(key)
    if (text === undefined) continue
    const value = Number(text)
    if (text === '' || !Number.isFinite(value))
      throw new TypeError(`${key} is "${text}", not a number.`)
    numbers[key] = value
  }
  return numbers
}

function ruleOf({ variant, options }: PartName): FormatRule {
  const tags = options.get('tags')?.split('+')
  if (tags && !variant && tags.every(tag => /^[\w-]+$/.test(tag))) return { kind: 'tags', tags }
  if (!tags && (variant === 'boxed' || variant === 'json')) return { kind: variant }
  throw new TypeError('A format is one of format:boxed, format:json and format:tags=think+answer.')
}

function required(speaker: Speaker | undefined): Speaker {
  if (speaker) return speaker
  throw new TypeError('The reward "judge" needs a speaker that judges, and none was given.')
}
