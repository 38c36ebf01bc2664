import { z } from 'zod'
import { didYouMean } from '../../base/core/names/nearest.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { checkSetting, checkValue, shownValue } from './check-settings.ts'
import { defaults, type SettingName, settings } from './settings.ts'

/** What an option may be, in words and as a test. */
interface Kind {
  readonly wanted: string
  fits(value: unknown): boolean
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
const has = (value: unknown, name: PropertyKey): boolean => isObject(value) && name in value

const aFunction: Kind = { wanted: 'a function', fits: value => typeof value === 'function' }
const aSwitch: Kind = { wanted: 'true or false', fits: value => typeof value === 'boolean' }
const anObject: Kind = {
  wanted: 'an object',
  fits: value => isObject(value) && !Array.isArray(value),
}
const aSchedule: Kind = {
  wanted: 'a schedule',
  fits: value => aFunction.fits(value) || anObject.fits(value),
}
const aPort: Kind = {
  wanted: 'a whole number from 0 to 65535',
  fits: value => Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < 65_536,
}
const aCount: Kind = {
  wanted: 'a whole number from 1 on',
  fits: value =>
    value === Number.POSITIVE_INFINITY || (Number.isSafeInteger(value) && Number(value) > 0),
}
const someSeconds: Kind = {
  wanted: 'a number of seconds from 0 on',
  fits: value => typeof value === 'number' && value >= 0,
}
const anything: Kind = { wanted: 'anything', fits: () => true }
const anOpened = (what: string, method: string): Kind => ({
  wanted: `an opened ${what}, an object with ${method}`,
  fits: value => has(value, method),
})
const aPolicy = anOpened('policy', 'sample')
const listOf = (what: string): Kind => ({
  wanted: `a list of names and ${what}`,
  fits: value =>
    Array.isArray(value) && value.every(each => isObject(each) || (each !== '' && isText(each))),
})
const isText = (value: unknown): boolean => typeof value === 'string'

/** Tasks that are given one by one; a list of none is a mistake. */
export const tasksOneByOne: Kind = {
  wanted: 'a list of tasks that is not empty, or anything that gives them one by one',
  fits: value =>
    Array.isArray(value)
      ? value.length > 0
      : has(value, Symbol.iterator) || has(value, Symbol.asyncIterator),
}

/** What options may be besides what the settings of their names may be: parts that are opened already. */
const openedParts = {
  environment: anOpened('environment', 'open'),
  tasks: tasksOneByOne,
  policy: aPolicy,
  reference: aPolicy,
  teacher: aPolicy,
  model: anOpened('renderer', 'render'),
  strategy: aFunction,
  branch: anObject,
  condense: anOpened('condenser', 'condenser'),
  guards: listOf('guards'),
  filters: listOf('filters'),
  reward: anObject,
  seats: anObject,
  trainer: anObject,
  learningRate: aSchedule,
  heldOut: tasksOneByOne,
} as const satisfies Partial<Record<SettingName, Kind>>

/** Options that no setting has the name of. Those of the gateway are read where it is opened. */
const otherOptions = {
  listen: aFunction,
  tell: aFunction,
  instruments: {
    wanted: 'a list of functions',
    fits: value => Array.isArray(value) && value.every(aFunction.fits),
  },
  signal: { wanted: 'an AbortSignal', fits: value => has(value, 'aborted') },
  resumes: aSwitch,
  elsewhere: aFunction,
  config: anObject,
  entropy: {
    wanted: 'a number, a schedule or a target',
    fits: value => Number.isFinite(value) || aSchedule.fits(value),
  },
  lossOptions: anObject,
  onStep: aFunction,
  isEnough: aFunction,
  onEvaluation: aFunction,
  onTask: aFunction,
  port: aPort,
  host: anything,
  secrets: anything,
  attempts: aCount,
  idleSeconds: someSeconds,
  graceSeconds: someSeconds,
  onGroup: aFunction,
} as const satisfies Record<string, Kind>

/** Where the options stand that are put together from several settings, or called otherwise. */
const placeOfSetting = {
  temperature: 'sampling.temperature',
  topP: 'sampling.topP',
  topK: 'sampling.topK',
  minP: 'sampling.minP',
  maxTurns: 'limits.turns',
  maxRolloutTokens: 'limits.tokens',
  maxContext: 'limits.context',
  maxNewTokens: 'limits.newTokens',
  maxSeconds: 'limits.seconds',
  entropyBonus: 'entropy',
  agent: 'the environment, which is the first argument',
  cluster: 'elsewhere: openCluster(…)',
  results: 'no option: write what evaluate gives',
} as const satisfies Partial<Record<SettingName, string>>

/** A limit, or infinity where there is none. */
const orNone = (limit: z.ZodType) => limit.or(z.literal(Number.POSITIVE_INFINITY)).optional()

/** Options that are objects of values, each held to the setting it is. */
const grouped = {
  sampling: () =>
    z.strictObject({
      temperature: settings.temperature.schema.optional(),
      topP: settings.topP.schema.optional(),
      topK: settings.topK.schema.optional(),
      minP: settings.minP.schema.optional(),
    }),
  limits: () =>
    z.strictObject({
      turns: orNone(settings.maxTurns.schema),
      tokens: orNone(settings.maxRolloutTokens.schema),
      context: orNone(settings.maxContext.schema),
      newTokens: orNone(settings.maxNewTokens.schema),
      seconds: orNone(settings.maxSeconds.schema),
    }),
} as const satisfies Record<string, () => z.ZodType>

/** The functions of the library that take these options. */
export type OptionTaker = 'roll' | 'evaluate' | 'train' | 'gateway'

const makesAttempts = ['roll', 'evaluate', 'train'] as const
const makesGroups = ['roll', 'train', 'gateway'] as const

/** Who takes an option, where not everybody does. */
const takers = {
  keep: ['roll'],
  overSample: ['roll'],
  unfinished: ['roll', 'evaluate', 'gateway'],
  trials: ['evaluate'],
  k: ['evaluate'],
  onTask: ['evaluate'],
  successAt: ['evaluate', 'train'],
  strategy: makesAttempts,
  branch: makesAttempts,
  leaves: makesAttempts,
  stepHistory: makesAttempts,
  condense: makesAttempts,
  budget: makesAttempts,
  resumes: makesAttempts,
  group: makesGroups,
  advantage: makesGroups,
  weighting: makesGroups,
  reference: makesGroups,
  teacher: makesGroups,
  distill: makesGroups,
  klPenalty: makesGroups,
  klIn: makesGroups,
  overlong: makesGroups,
  proximal: makesGroups,
  importance: makesGroups,
  filters: makesGroups,
  sinks: makesGroups,
  refill: makesGroups,
  trainer: ['train'],
  steps: ['train'],
  tasksPerStep: ['train'],
  sampleTasks: ['train'],
  heldOut: ['train'],
  learningRate: ['train'],
  loss: ['train'],
  lossOptions: ['train'],
  epochs: ['train'],
  updates: ['train'],
  entropy: ['train'],
  oracleBonus: ['train'],
  maxStaleness: ['train'],
  onUpdate: ['train'],
  evaluateEvery: ['train'],
  evaluateStrategy: ['train'],
  isEnough: ['train'],
  checkpointEvery: ['train'],
  onStep: ['train'],
  onEvaluation: ['train'],
  environment: ['gateway'],
  tasks: ['gateway'],
  port: ['gateway'],
  host: ['gateway'],
  secrets: ['gateway'],
  attempts: ['gateway'],
  idleSeconds: ['gateway'],
  graceSeconds: ['gateway'],
  onGroup: ['gateway'],
} as const satisfies Partial<Record<AnyOption, readonly OptionTaker[]>>

type AnyOption =
  | Exclude<SettingName, keyof typeof placeOfSetting>
  | keyof typeof otherOptions
  | keyof typeof grouped

/** The names of the options that a function takes. */
export type OptionOf<Taker extends OptionTaker> = {
  [Name in AnyOption]: Name extends keyof typeof takers
    ? Taker extends (typeof takers)[Name][number]
      ? Name
      : never
    : Name
}[AnyOption]

/** Whether a function takes a setting as an option under its own name. */
export function takesSetting(taker: OptionTaker, name: string): boolean {
  return isOption(name) && takersOf(name).includes(taker)
}

function isOption(name: string): boolean {
  return Object.hasOwn(settings, name) && !Object.hasOwn(placeOfSetting, name)
}

const everybody: readonly OptionTaker[] = [...makesAttempts, 'gateway']

function takersOf(name: string): readonly OptionTaker[] {
  return Object.hasOwn(takers, name) ? takers[name as keyof typeof takers] : everybody
}

/** Whether two sets of names are the same one. */
export type AreSame<One, Other> = [One] extends [Other]
  ? [Other] extends [One]
    ? true
    : false
  : false

/**
 * Holds the options of a library call to what flags and config files are held to: a name that it does not
 * take or an impossible value throws, saying what was possible. Options and their names here have to be the
 * same to compile.
 */
export function checkOptions<Taker extends OptionTaker, Options extends object>(
  taker: Taker,
  options: AreSame<keyof Options, OptionOf<Taker>> extends true ? Options : never,
): void {
  if (!isObject(options) || Array.isArray(options)) {
    throw new SettingError(
      `options: ${shownValue(options)} is not possible: an object that names at least the policy, as in { policy: 'embedded' }`,
    )
  }
  if ((options as { readonly policy?: unknown }).policy === undefined) {
    throw new SettingError(
      "options.policy is missing: a URI such as 'sglang:http://localhost:30000', several of them, or an opened policy",
    )
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue
    checkTaken(taker, name)
    checkOption(taker, name, value)
  }
}

/** What is an option of the gateway alone because others take it as an argument. */
const places: Readonly<Record<string, string>> = {
  environment: 'it is the first argument',
  tasks: 'they are the second argument',
}

/** Refuses an option that only others take: it would change nothing. */
function checkTaken(taker: OptionTaker, name: string): void {
  const others = takersOf(name)
  if (others.includes(taker)) return
  const who = `${others.join(' and ')} ${others.length > 1 ? 'do' : 'does'}`
  throw new SettingError(
    `options.${name}: ${taker} takes no option "${name}"; ${places[name] ?? who}`,
  )
}

function checkOption(taker: OptionTaker, name: string, value: unknown): void {
  const from = `options.${name}`
  if (Object.hasOwn(grouped, name)) {
    checkValue(grouped[name as keyof typeof grouped](), value, { from })
    return
  }
  if (isOption(name)) {
    checkNamed(name as SettingName, value, from)
    return
  }
  if (!Object.hasOwn(otherOptions, name)) throw unknownOption(taker, name)
  const { fits, wanted }: Kind = otherOptions[name as keyof typeof otherOptions]
  if (fits(value)) return
  throw new SettingError(`${from}: ${shownValue(value)} is not possible: it is ${wanted}`)
}

/** An option that has the name of a setting: what the setting may be, or a part that is opened already. */
function checkNamed(name: SettingName, value: unknown, from: string): void {
  // Defaults are right, and need no schema: most options of a command are.
  if (value === defaults[name]) return
  const opened: Kind | undefined = Object.hasOwn(openedParts, name)
    ? openedParts[name as keyof typeof openedParts]
    : undefined
  if (!opened?.fits(value)) checkSetting(name, value, from, opened?.wanted)
}

function unknownOption(taker: OptionTaker, name: string): SettingError {
  if (Object.hasOwn(placeOfSetting, name)) {
    const place = placeOfSetting[name as keyof typeof placeOfSetting]
    return new SettingError(`options.${name}: no option called "${name}". It is ${place}.`)
  }
  const known = [...Object.keys(settings).filter(isOption), ...Object.keys(otherOptions)]
  const names = [...known, ...Object.keys(grouped)].filter(each => takersOf(each).includes(taker))
  const hint =
    didYouMean(name, names) ||
    ' Most have the names of settings, which docs/reference/config.md lists.'
  return new SettingError(`options.${name}: no option called "${name}".${hint}`)
}
