import { type PartName, parsePartName, UnknownPartError } from '../../base/core/names/part-name.ts'
import type { RewardFunction } from '../../base/core/reward.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import { exactMatch } from './exact-match.ts'
import { f1 } from './f1.ts'
import { type FormatRule, format } from './format.ts'
import { judge } from './judge.ts'
import { numberMatch } from './number-match.ts'
import { assertion, trajectoryAssertions } from './trajectory.ts'

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

const trajectoryOptions = [
  'name',
  'pattern',
  'min',
  'max',
  'steps',
  'mode',
  'args',
  'ignore',
  'goal',
]

/** The rewards that can be named. */
const builtInRewards: Readonly<Record<string, RewardFactory>> = {
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
  trajectory: {
    about:
      'What promptfoo asserts of the calls: tool-used, tool-sequence, tool-args-match, step-count, goal-success.',
    usage:
      'trajectory:tool-used,name=TOOL[,min=1,max=N], trajectory:tool-sequence,steps=A+B[,mode=exact], ' +
      'trajectory:tool-args-match,name=TOOL,args=KEY=VALUE+…[,mode=exact,ignore=KEY+…], trajectory:step-count,min=N,max=N or trajectory:goal-success,goal=WORDS',
    variants: [...trajectoryAssertions, 'goal-success'],
    options: trajectoryOptions,
    open: makeTrajectory,
  },
  'not-trajectory': {
    about: 'The same of calls that should not be: 1 where the assertion does not hold.',
    usage: 'not-trajectory:tool-used,name=TOOL, and so on as trajectory',
    variants: trajectoryAssertions,
    options: trajectoryOptions.filter(option => option !== 'goal'),
    open(part, needs) {
      const holds = makeTrajectory(part, needs)
      return async (input, call) => 1 - Number(await holds(input, call))
    },
  },
}

/** Opens a named assertion about the calls; `goal-success` needs a judge. */
function makeTrajectory({ variant, options }: PartName, { speaker }: RewardNeeds): RewardFunction {
  const bounds = numbersOf(options, ['min', 'max'])
  const needed = (key: string): string => {
    const value = options.get(key)
    if (value) return value
    throw new TypeError(`trajectory:${variant} needs ${key}=…`)
  }
  const which = (): { pattern: string } | { name: string } =>
    options.has('pattern') ? { pattern: needed('pattern') } : { name: needed('name') }
  switch (variant) {
    case 'tool-used':
      return assertion({ type: 'trajectory:tool-used', value: { ...which(), ...bounds } })
    case 'tool-sequence':
      return assertion({
        type: 'trajectory:tool-sequence',
        value: { steps: needed('steps').split('+'), mode: modeOf(options, ['in_order', 'exact']) },
      })
    case 'tool-args-match':
      return assertion({
        type: 'trajectory:tool-args-match',
        value: {
          ...which(),
          args: argumentsIn(needed('args')),
          mode: modeOf(options, ['partial', 'exact']),
          ...(options.has('ignore') && { ignore: needed('ignore').split('+') }),
        },
      })
    case 'step-count':
      return assertion({
        type: 'trajectory:step-count',
        value: { ...(options.has('pattern') && { pattern: needed('pattern') }), ...bounds },
      })
    case 'goal-success':
      return judge({
        speaker: required(speaker),
        rubric: `A full score means that this was achieved: ${needed('goal')}`,
      })
    default:
      throw new TypeError(`Write ${builtInRewards.trajectory!.usage}.`)
  }
}

function modeOf<Mode extends string>(
  options: PartName['options'],
  [usual, ...others]: readonly [Mode, ...Mode[]],
): Mode {
  const mode = options.get('mode') ?? usual
  const found = [usual, ...others].find(each => each === mode)
  if (found !== undefined) return found
  throw new TypeError(`mode is "${mode}"; it is ${[usual, ...others].join(' or ')}.`)
}

/** Reads `key=value+key=value`; a value is JSON if it parses as that, otherwise text. */
function argumentsIn(text: string): Readonly<Record<string, unknown>> {
  const entries = text.split('+').map((entry): [string, unknown] => {
    const [key = '', ...rest] = entry.split('=')
    const value = rest.join('=')
    try {
      return [key, JSON.parse(value) as unknown]
    } catch {
      return [key, value]
    }
  })
  return Object.fromEntries(entries)
}

/** Opens a reward as it is named on a command line, `NAME[:ITEM,…]`. */
export function makeReward(text: string, needs: RewardNeeds = {}): RewardFunction {
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
